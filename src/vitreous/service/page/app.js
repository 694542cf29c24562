// The page: something to write on, and an answer that shows where it comes from.

const $ = (id) => document.getElementById(id);
const INK = "#14181c", PAPER = "#fff", BLUE = "#2a78d6", ORANGE = "235, 104, 52";
const PAUSE = 350; // milliseconds after a stroke, before the drawing is read
const STEP = 700; // milliseconds for each digit where it is shown being written
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// ---- writing ----

const pad = $("pad"), pen = pad.getContext("2d");
let strokes = [], pointer = null, soon = 0;

function redraw() {
  pen.fillStyle = PAPER;
  pen.fillRect(0, 0, pad.width, pad.height);
  pen.lineCap = pen.lineJoin = "round";
  pen.strokeStyle = pen.fillStyle = INK;
  for (const stroke of strokes) drawStroke(stroke);
  const none = strokes.length === 0;
  $("undo").disabled = $("clear").disabled = none;
  $("pad-hint").hidden = !none;
}

function drawStroke(points) {
  pen.beginPath();
  pen.moveTo(points[0].x, points[0].y);
  for (const point of points) {
    pen.lineWidth = point.width;
    pen.lineTo(point.x, point.y);
  }
  pen.stroke();
}

function place(event) {
  const box = pad.getBoundingClientRect(), scale = pad.width / box.width;
  const pressure = event.pointerType === "pen" ? 0.6 + 0.8 * event.pressure : 1;
  return {
    x: (event.clientX - box.left) * scale,
    y: (event.clientY - box.top) * scale,
    width: 20 * pressure,
  };
}

pad.addEventListener("pointerdown", (event) => {
  if (pointer !== null || event.button !== 0) return;
  pointer = event.pointerId;
  pad.setPointerCapture(pointer);
  clearTimeout(soon);
  strokes.push([place(event)]);
  redraw();
  event.preventDefault();
});
pad.addEventListener("pointermove", (event) => {
  if (event.pointerId !== pointer) return;
  const all = event.getCoalescedEvents?.() ?? [];
  strokes.at(-1).push(...(all.length ? all : [event]).map(place));
  redraw();
});
for (const end of ["pointerup", "pointercancel"]) {
  pad.addEventListener(end, (event) => {
    if (event.pointerId !== pointer) return;
    pointer = null;
    readDrawing();
  });
}

function readDrawing() {
  clearTimeout(soon);
  if (strokes.length === 0) return forget();
  soon = setTimeout(() => pad.toBlob((blob) => read(blob, "drawing.png"), "image/png"), PAUSE);
}

$("undo").addEventListener("click", () => { strokes.pop(); redraw(); readDrawing(); });
$("clear").addEventListener("click", () => { strokes = []; redraw(); forget(); pad.focus(); });

// ---- images from elsewhere ----

for (const id of ["file", "camera"]) {
  $(id).addEventListener("change", () => {
    const [file] = $(id).files;
    if (file) show(file);
    $(id).value = ""; // so that the same file can be chosen again
  });
}

function show(file) {
  clearTimeout(soon);
  strokes = [];
  redraw();
  read(file, file.name || "image");
}

const firstFile = (data) => [...(data?.files ?? [])][0];
for (const over of ["dragenter", "dragover"]) {
  addEventListener(over, (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
}
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const file = firstFile(event.dataTransfer);
  if (file) show(file);
});
addEventListener("paste", (event) => {
  const file = firstFile(event.clipboardData);
  if (file) show(file);
});

// ---- asking ----

let token = "", last = null, asking = null;

async function read(blob, name) {
  last = { blob, name };
  asking?.abort();
  const own = (asking = new AbortController());
  document.body.classList.add("waiting");
  const form = new FormData();
  form.append("image", blob, name);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    const reply = await fetch("/v1/read?attention=true", {
      method: "POST", body: form, headers, signal: own.signal,
    });
    const answer = await reply.json();
    if (own !== asking) return;
    if (reply.ok) await tell(answer, blob);
    else fail(reply.status, answer.error);
  } catch (error) {
    if (own === asking) fail(0, "The service does not answer. Is it still running?");
  } finally {
    if (own === asking) document.body.classList.remove("waiting");
  }
}

function forget() {
  asking?.abort();
  asking = last = null;
  document.body.classList.remove("waiting");
  clear("Nothing to read yet.");
}

function clear(sentence) {
  stopWriting();
  $("text").textContent = sentence;
  $("text").className = "empty";
  $("sure").textContent = "";
  $("problem").hidden = $("warnings").hidden = $("whole").hidden = true;
  $("lines").replaceChildren();
}

function fail(status, sentence) {
  clear("No answer.");
  const text = sentence || `The service answered ${status}.`;
  $("problem").textContent = text.charAt(0).toUpperCase() + text.slice(1);
  $("problem").hidden = false;
  if (status === 401) {
    $("problem").textContent = "This service asks for a token; give it in the field with the drawing.";
    $("token-form").hidden = false;
    $("token").focus();
  }
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  $("token-form").hidden = true;
  if (last) read(last.blob, last.name);
});

// ---- answering ----

const percent = (chance) =>
  chance > 0.999 ? "more than 99.9 %" : chance < 0.001 ? "less than 0.1 %" : `${(100 * chance).toFixed(1)} %`;

const short = (chance) => (chance > 0.999 ? "> 99.9 %" : percent(chance));

async function tell(answer, blob) {
  clear(answer.text || "No number was found.");
  $("text").classList.toggle("empty", answer.text === "");
  if (answer.text) {
    const doubt = answer.rejected ? "Not sure, better look yourself: " : "";
    $("sure").textContent = `${doubt}${percent(answer.confidence)} that all of it is right.`;
  }
  $("warnings").replaceChildren(...answer.warnings.map((text) => element("li", text)));
  $("warnings").hidden = answer.warnings.length === 0;
  $("lines").replaceChildren(...(await Promise.all(answer.lines.map(lineOf))));
  await drawOriginal(answer, blob);
}

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
}

async function drawOriginal(answer, blob) {
  const canvas = $("original");
  let image;
  try {
    image = await createImageBitmap(blob, { imageOrientation: "from-image" });
  } catch {
    return; // a format that this browser does not show; the answer stands without it
  }
  const scale = Math.min(1, 1200 / Math.max(image.width, image.height));
  canvas.width = Math.max(1, image.width * scale);
  canvas.height = Math.max(1, image.height * scale);
  const brush = canvas.getContext("2d");
  brush.fillStyle = PAPER;
  brush.fillRect(0, 0, canvas.width, canvas.height);
  brush.drawImage(image, 0, 0, canvas.width, canvas.height);
  brush.strokeStyle = BLUE;
  brush.lineWidth = Math.max(2, canvas.width / 300);
  for (const line of answer.lines) {
    brush.strokeRect(...line.box.map((value) => value * scale));
  }
  $("whole").hidden = answer.lines.length === 0;
}

const pictureOf = (address) => address && new Promise((done, failed) => {
  const image = new Image();
  image.onload = () => done(image);
  image.onerror = failed;
  image.src = address;
});

async function lineOf(line) {
  const part = $("line").content.cloneNode(true).firstElementChild;
  const find = (selector) => part.querySelector(selector);
  const view = { line, image: await pictureOf(line.picture), canvas: find(".seen"), chosen: -1, part };
  find("h3").textContent = `${line.text} · ${percent(line.confidence)}`;
  const looked = line.attention !== null;
  view.buttons = line.digits.map((digit, index) => digitButton(digit, () => choose(view, index)));
  find(".digits").replaceChildren(...view.buttons);
  find(".replay").hidden = find(".patches").parentElement.hidden = !looked;
  find(".replay").addEventListener("click", () => write(view));
  find(".patches").addEventListener("change", () => paint(view));
  const likely = line.alternatives.filter(({ confidence }) => confidence >= 0.001);
  const others = likely.map(({ text, confidence }) => `${text || "nothing"} (${percent(confidence)})`);
  find(".others").textContent = others.length ? `It could also be ${others.join(", ")}.` : "";
  choose(view, -1);
  return part;
}

function digitButton(digit, chosen) {
  const button = element("button");
  button.type = "button";
  const bar = element("meter");
  bar.min = 0;
  bar.max = 1;
  bar.value = digit.confidence;
  bar.setAttribute("aria-hidden", "true");
  button.append(element("strong", digit.value), element("span", short(digit.confidence)), bar);
  button.setAttribute("aria-label", `${digit.value}, ${percent(digit.confidence)} sure`);
  button.addEventListener("click", () => { stopWriting(); chosen(); });
  return button;
}

function choose(view, index) {
  view.chosen = view.chosen === index ? -1 : index;
  view.buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === view.chosen)));
  const { line, chosen } = view, caption = view.part.querySelector("figcaption");
  if (line.attention === null) caption.textContent = "What the model saw";
  else if (chosen < 0) caption.textContent = "What the model saw, cut into patches; choose a digit to see where it looked";
  else caption.textContent = `Where it looked as it wrote the ${line.digits[chosen].value}${looks(line.attention[chosen])}`;
  view.canvas.setAttribute("aria-label", caption.textContent);
  paint(view);
}

// In words, for those who do not see the picture: the column of patches with the most attention.
function looks(map) {
  const columns = map[0].map((_, column) => map.reduce((sum, row) => sum + row[column], 0));
  return `: most at patch column ${columns.indexOf(Math.max(...columns)) + 1} of ${columns.length}`;
}

function paint({ line, image, canvas, chosen, part }) {
  canvas.parentElement.hidden = !image;
  if (!image) return;
  const scale = Math.max(1, Math.min(8, Math.floor(1024 / image.width)));
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  const brush = canvas.getContext("2d");
  brush.imageSmoothingEnabled = false;
  brush.drawImage(image, 0, 0, canvas.width, canvas.height);
  if (line.attention === null || line.attention.length === 0) return;
  const map = line.attention[Math.max(chosen, 0)], rows = map.length, columns = map[0].length;
  const wide = canvas.width / columns, high = canvas.height / rows;
  const most = Math.max(...map.flat(), 1e-9);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      if (chosen >= 0) {
        brush.fillStyle = `rgba(${ORANGE}, ${0.75 * map[row][column] / most})`;
        brush.fillRect(column * wide, row * high, wide, high);
      }
      if (part.querySelector(".patches").checked) {
        brush.strokeStyle = "rgba(91, 101, 112, .55)";
        brush.strokeRect(column * wide + 0.5, row * high + 0.5, wide, high);
      }
    }
  }
}

// ---- the number as it is written, digit by digit ----

let writing = 0, unwritten = [];

function stopWriting() {
  clearTimeout(writing);
  unwritten.forEach((button) => button.classList.remove("unwritten"));
  unwritten = [];
}

function write(view) {
  stopWriting();
  choose(view, view.chosen);
  unwritten = [...view.buttons];
  unwritten.forEach((button) => button.classList.add("unwritten"));
  next(view, 0);
}

function next(view, index) {
  if (index === view.buttons.length) return;
  unwritten.shift()?.classList.remove("unwritten");
  choose(view, index);
  writing = setTimeout(() => next(view, index + 1), calm.matches ? 2 * STEP : STEP);
}

redraw();
