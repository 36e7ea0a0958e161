// Spec editor: groups of fields, each a slider and a text with a unit. The server parses, checks and answers with texts.
const STEPS = 400;

function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) if (key === "class") out.className = value; else if (key.startsWith("on")) out.addEventListener(key.slice(2), value); else out.setAttribute(key, value);
  out.append(...children);
  return out;
}

function short(value, unit) {
  if (!unit) return String(Number(value.toPrecision(4)));
  const binary = unit === "B" && value >= 1024 && value % 1024 === 0;
  const scale = binary ? [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 1024]] : [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1], ["m", 1e-3], ["u", 1e-6], ["n", 1e-9]];
  const [prefix, size] = scale.find(([, s]) => value >= s * 0.9999999) || ["", 1];
  return `${Number((value / size).toPrecision(4))} ${prefix}${unit}`;
}

function snap(value, field) {
  const kept = Math.min(Math.max(value, field.low), field.high);
  if (field.integer) return Math.round(kept);
  if (field.unit === "B" && kept >= 4096) { const step = 2 ** (Math.floor(Math.log2(kept)) - 3); return Math.round(kept / step) * step; }
  return kept === 0 ? 0 : Number(kept.toPrecision(3));
}

const toValue = (at, f) => snap(f.log ? f.low * (f.high / f.low) ** (at / STEPS) : f.low + (f.high - f.low) * (at / STEPS), f);
const toPlace = (v, f) => STEPS * (f.log ? Math.log(Math.max(v, f.low) / f.low) / Math.log(f.high / f.low) : (v - f.low) / (f.high - f.low || 1));

export function render({model}) {
  const root = element("div", {class: "ed"}), search = element("input", {type: "search", placeholder: "Find a field", "aria-label": "find a field"}), list = element("div");
  const rows = new Map();
  let queued = null, timer = 0, sent = 0;
  const send = (message) => model.send_msg(message);
  const soon = (message) => { queued = message; if (!timer) timer = setTimeout(() => { timer = 0; sent = performance.now(); send(queued); }, Math.max(0, sent + 25 - performance.now())); };
  const row = (field) => {
    const name = element("span", {class: "name", title: `${field.help}\n\n${field.path}${field.unit ? ` in ${field.unit}` : ""}`}, field.label);
    const was = element("button", {class: "was", title: "back to the card's own value", hidden: "", onclick: () => send({type: "reset", path: field.path})});
    const text = element("input", {class: "v", "aria-label": field.label, spellcheck: "false"});
    const slider = element("input", {type: "range", min: "0", max: String(STEPS), step: "any", "aria-label": `${field.label} slider`, "data-path": field.path});
    const error = element("div", {class: "err", role: "alert", hidden: ""});
    const box = element("div", {class: "f"}, element("div", {class: "top"}, name, was, text), slider, error);
    slider.addEventListener("input", () => { const value = toValue(Number(slider.value), field); text.value = short(value, field.unit); error.hidden = true; soon({type: "value", path: field.path, value}); });
    slider.addEventListener("change", () => { box.dataset.sliding = ""; });
    slider.addEventListener("pointerdown", () => { box.dataset.sliding = "1"; });
    text.addEventListener("change", () => send({type: "text", path: field.path, text: text.value}));
    text.addEventListener("keydown", (e) => { if (e.key === "Enter") text.blur(); });
    rows.set(field.path, {field, box, was, text, slider, error});
    return box;
  };
  const values = () => {
    const counts = new Map();
    for (const [path, r] of rows) {
      const found = model.values[path];
      if (!found) continue;
      const [value, text, changed, own] = found;
      r.box.classList.toggle("changed", changed); r.was.hidden = !changed; r.was.textContent = `was ${own}`;
      if (r.slider !== r.slider.getRootNode().activeElement || !r.box.dataset.sliding) { r.slider.value = String(toPlace(value, r.field)); if (r.text !== r.text.getRootNode().activeElement) r.text.value = text; }
      if (changed) counts.set(r.group, (counts.get(r.group) || 0) + 1);
    }
    for (const part of list.querySelectorAll("details")) { const n = counts.get(part); part.querySelector(".n").textContent = n ? `${n} changed` : ""; }
  };
  const build = () => {
    rows.clear(); list.replaceChildren();
    if (!model.groups.length) list.append(element("div", {class: "none"}, "The recording is replayed as measured. Choose a card to change its numbers."));
    model.groups.forEach((group, i) => {
      const part = element("details", i < 3 ? {open: ""} : {}, element("summary", {}, group.title, element("span", {class: "n"})), ...group.fields.map(row));
      group.fields.forEach((f) => { rows.get(f.path).group = part; });
      list.append(part);
    });
    values(); filter();
  };
  const filter = () => {
    const text = search.value.trim().toLowerCase();
    for (const r of rows.values()) r.box.hidden = Boolean(text) && !`${r.field.label} ${r.field.path}`.toLowerCase().includes(text);
    for (const part of list.querySelectorAll("details")) { const any = [...part.querySelectorAll(".f")].some((f) => !f.hidden); part.hidden = !any; if (text && any) part.open = true; }
  };
  const theme = () => root.classList.toggle("dark", model.dark);
  search.addEventListener("input", filter);
  model.on("change:groups", build);
  model.on("change:values", values);
  model.on("change:dark", theme);
  model.on("msg:custom", (m) => { const r = rows.get(m.path); if (m.type === "error" && r) { r.error.textContent = m.text; r.error.hidden = !m.text; } });
  root.append(search, list);
  theme(); build();
  return root;
}
