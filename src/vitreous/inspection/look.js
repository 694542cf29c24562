"use strict";
// One picture, its tokens, and whom the chosen token reads. Everything is in the page already.
function bytes(text) { return Uint8Array.from(atob(text), c => c.charCodeAt(0)); }

function start(box) {
  const about = JSON.parse(box.querySelector("script").textContent);
  const [rows, columns] = about.grid, n = about.labels.length, prefix = n - rows * columns;
  const weights = bytes(about.weights), tops = new Uint16Array(bytes(about.tops).buffer);
  const stage = box.querySelector(".stage"), over = stage.querySelector("canvas");
  const mark = stage.querySelector(".mark"), says = box.querySelector(".says");
  const chips = box.querySelector(".chips"), choice = box.querySelector("select");
  const heads = box.querySelector(".heads");
  let token = prefix ? 0 : (rows >> 1) * columns + (columns >> 1), shown = 0, tiles = [];

  // Row `token` of map `at`: each byte is a share of the row's largest weight.
  function row(at) {
    const start = (at * n + token) * n, top = tops[at * n + token] / 65535;
    return { part: weights.subarray(start, start + n), top };
  }
  function paint(canvas, at, colour) {
    const { part } = row(at), pen = canvas.getContext("2d");
    canvas.width = columns; canvas.height = rows;
    const picture = pen.createImageData(columns, rows);
    let most = 1;
    for (let i = prefix; i < n; i++) most = Math.max(most, part[i]);
    for (let i = prefix; i < n; i++) picture.data.set(colour(part[i] / most), 4 * (i - prefix));
    pen.putImageData(picture, 0, 0);
  }
  const stops = [[247, 247, 244], [42, 120, 214], [28, 33, 38]];
  function ink(x) {
    const [a, b, t] = x < .55 ? [stops[0], stops[1], x / .55] : [stops[1], stops[2], (x - .55) / .45];
    return [0, 1, 2].map(i => Math.round(a[i] + (b[i] - a[i]) * t)).concat(255);
  }
  const glow = x => [235, 104, 52, Math.round(215 * x)];

  function draw() {
    for (const [tile, at] of tiles) {
      paint(tile.querySelector("canvas"), at, ink);
      tile.setAttribute("aria-pressed", at === shown);
    }
    paint(over, shown, glow);
    [...chips.children].forEach((chip, i) => chip.setAttribute("aria-pressed", i === token));
    mark.hidden = token < prefix;
    const patch = token - prefix, [high, wide] = about.patch;
    mark.style.left = 100 * (patch % columns) * wide + "%";
    mark.style.top = 100 * Math.floor(patch / columns) * high + "%";
    mark.style.width = 100 * wide + "%"; mark.style.height = 100 * high + "%";
    const { part, top } = row(shown);
    const best = [...part.keys()].sort((a, b) => part[b] - part[a]).slice(0, 4);
    const percent = i => (100 * top * part[i] / 255).toFixed(1) + " %";
    const called = i => (about.labels[i].endsWith("token") ? "the " : "") + about.labels[i];
    says.textContent = "In " + about.maps[shown] + ", " + called(token) + " reads most from " +
      best.map(i => (i === token ? "itself" : called(i)) + " (" + percent(i) + ")").join(", ") + ".";
  }
  function choose(group) {
    heads.replaceChildren();
    tiles = about.groups[group][1].map(at => {
      const tile = document.createElement("button"), canvas = document.createElement("canvas");
      tile.type = "button"; tile.className = "tile";
      tile.append(canvas, about.short[at]);
      tile.onclick = () => { shown = at; draw(); };
      heads.append(tile);
      return [tile, at];
    });
    shown = tiles[tiles.length - 1][1];
    draw();
  }
  function pick(event) {
    const area = stage.getBoundingClientRect(), [high, wide] = about.patch;
    const col = Math.floor((event.clientX - area.left) / area.width / wide);
    const line = Math.floor((event.clientY - area.top) / area.height / high);
    if (col < 0 || line < 0 || col >= columns || line >= rows) return;
    token = prefix + line * columns + col; draw();
  }
  stage.onpointerdown = pick;
  stage.onpointermove = event => { if (event.pointerType === "mouse") pick(event); };
  stage.onkeydown = event => {
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!move) return;
    event.preventDefault();
    const patch = token < prefix ? 0 : token - prefix + move;
    const wraps = Math.abs(move) === 1 && token >= prefix &&
      Math.floor(patch / columns) !== Math.floor((token - prefix) / columns);
    if (patch >= 0 && patch < rows * columns && !wraps) { token = prefix + patch; draw(); }
  };
  for (let i = 0; i < prefix; i++) {
    const chip = document.createElement("button");
    chip.type = "button"; chip.textContent = about.labels[i];
    chip.onclick = () => { token = i; draw(); };
    chips.append(chip);
  }
  about.groups.forEach(([name], i) => choice.add(new Option(name, i)));
  choice.onchange = () => choose(choice.value);
  choose(0);
}
document.querySelectorAll(".attention").forEach(start);
