// The interface for programs, drawn from its OpenAPI description.

const main = document.getElementById("routes");
document.getElementById("example").textContent =
  `curl -F image=@photo.jpg ${location.origin}/v1/read\n` +
  `curl --data-binary @photo.jpg "${location.origin}/v1/read?attention=true"`;

function element(name, content = [], className = "") {
  const made = document.createElement(name);
  made.append(...[content].flat());
  made.className = className;
  return made;
}

const nameOf = (schema) => schema?.$ref?.split("/").at(-1);

// A schema in a few words.
function words(schema = {}) {
  if (schema.$ref) return nameOf(schema);
  if (schema.anyOf) return schema.anyOf.map(words).join(" or ");
  if (schema.type === "array") return `list of ${words(schema.items)}`;
  return schema.const ?? schema.enum?.join(" or ") ?? schema.format ?? schema.type ?? "anything";
}

function table(rows) {
  const made = element("table");
  for (const cells of rows) made.append(element("tr", cells.map((cell) => element("td", cell))));
  return made;
}

function fields(schema) {
  const needed = new Set(schema.required ?? []);
  return table(Object.entries(schema.properties ?? {}).map(([name, field]) => [
    element("code", name), words(field) + (needed.has(name) ? "" : ", optional"), field.description ?? "",
  ]));
}

function route(path, method, about) {
  const parts = [element("h2", element("code", `${method.toUpperCase()} ${path}`)), element("p", about.summary ?? "")];
  if (about.description) parts.push(element("p", about.description.replaceAll("`", ""), "quiet"));
  for (const each of about.parameters ?? []) {
    parts.push(element("p", [element("code", each.name), ` (${each.in}): ${words(each.schema)}`]));
  }
  const bodies = Object.keys(about.requestBody?.content ?? {});
  if (bodies.length) parts.push(element("p", `Body: ${bodies.join(", ")}`));
  parts.push(table(Object.entries(about.responses).map(([status, answer]) => {
    const schema = Object.values(answer.content ?? {})[0]?.schema;
    return [element("code", status), answer.description, nameOf(schema) ?? ""];
  })));
  return element("section", parts, "route");
}

const answer = await fetch("/openapi.json");
const api = await answer.json();
const routes = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, about]) => route(path, method, about)));
const shapes = Object.entries(api.components.schemas).map(([name, schema]) =>
  element("section", [element("h2", name), element("p", schema.description ?? ""), fields(schema)], "route"));
main.replaceChildren(...routes, ...shapes);
