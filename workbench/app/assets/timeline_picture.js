// Picture: decodes the server's buffer and draws it. No state of its own but what it is given.
const GUTTER = 212, AXIS = 22, BAR = 14, PAIR = 2 * BAR + 9, CRITICAL = 1, RARE = 2, AGGREGATED = 4;
const FONT = "11px Inter, Roboto, system-ui, sans-serif";

function decode(bytes) {
  const raw = bytes instanceof ArrayBuffer ? bytes : bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  if (raw.byteLength < 128) return null;
  const head = new Float64Array(raw, 0, 16), n = head[1];
  let at = 128;
  const take = (Type) => { const out = new Type(raw, at, n); at += n * Type.BYTES_PER_ELEMENT; return out; };
  const picture = {n, t0: head[2], t1: head[3], end: head[4], aggregated: head[5] > 0, total: head[6], epoch: head[7], measured: head[8], predicted: head[9], shown: head[10]};
  for (const [key, Type] of [["x0", Float32Array], ["x1", Float32Array], ["share", Float32Array], ["index", Int32Array], ["count", Int32Array],
    ["name", Int32Array], ["op", Int32Array], ["lane", Uint16Array], ["kind", Uint8Array], ["flags", Uint8Array]]) picture[key] = take(Type);
  return picture;
}

function seconds(value, reference) {
  const size = Math.abs(reference === undefined ? value : reference);
  if (size === 0) return "0 s";
  const [unit, scale] = size >= 1 ? ["s", 1] : size >= 1e-3 ? ["ms", 1e3] : size >= 1e-6 ? ["µs", 1e6] : ["ns", 1e9];
  const number = value * scale;
  return `${Math.abs(number) >= 100 ? number.toFixed(1) : number.toFixed(3)} ${unit}`;
}

function ticks(t0, t1, pixels) {
  const rough = (t1 - t0) / Math.max(2, pixels / 110), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough), out = [];
  for (let i = Math.ceil(t0 / step); i * step <= t1 && out.length < 60; i++) out.push(i * step);
  return [out, step];
}

function tickText(t, step) {
  const [unit, scale] = step >= 0.5 ? ["s", 1] : step >= 5e-5 ? ["ms", 1e3] : step >= 5e-8 ? ["µs", 1e6] : ["ns", 1e9];
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step * scale) + 1e-9)));
  return `${(t * scale).toFixed(digits)} ${unit}`;
}

const INK = {
  light: {ground: "#FFFFFF", band: "#F5F7F9", line: "#E1E5EA", text: "#1F2933", dim: "#667380", strong: "#111111", accent: "#C2185B"},
  dark: {ground: "#15181C", band: "#1C2026", line: "#30363E", text: "#E4E8EC", dim: "#98A2AD", strong: "#FFFFFF", accent: "#FF6FA5"},
};

function laneTop(state, lane) {
  const row = state.rowOf[lane >> 1];
  return AXIS + row * PAIR - state.scroll + 4 + (lane & 1) * (BAR + 1);
}

function drawFrame(g, state, width, height, ink) {
  g.fillStyle = ink.ground; g.fillRect(0, 0, width, height);
  const [marks, step] = ticks(state.t0, state.t1, width - GUTTER);
  state.order.forEach((resource, row) => {
    const top = AXIS + row * PAIR - state.scroll;
    if (top > height || top + PAIR < AXIS) return;
    if (row % 2 === 0) { g.fillStyle = ink.band; g.fillRect(0, top, width, PAIR); }
  });
  g.strokeStyle = ink.line; g.lineWidth = 1; g.beginPath();
  for (const t of marks) { const x = Math.round(state.x(t)) + 0.5; if (x > GUTTER) { g.moveTo(x, AXIS); g.lineTo(x, height); } }
  g.stroke();
  return [marks, step];
}

function drawAxis(g, state, width, height, ink, [marks, step]) {
  g.fillStyle = ink.ground; g.fillRect(0, 0, width, AXIS);
  g.font = FONT; g.textBaseline = "middle"; g.textAlign = "center"; g.fillStyle = ink.dim;
  for (const t of marks) { const x = state.x(t); if (x > GUTTER + 24 && x < width - 26) g.fillText(tickText(t, step), x, AXIS / 2); }
  g.strokeStyle = ink.line; g.beginPath(); g.moveTo(0, AXIS + 0.5); g.lineTo(width, AXIS + 0.5); g.moveTo(GUTTER + 0.5, 0); g.lineTo(GUTTER + 0.5, height); g.stroke();
}

function clipped(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && g.measureText(text.slice(0, n) + "…").width > room) n--;
  return text.slice(0, n) + "…";
}

function drawLabels(g, state, height, ink) {
  g.save(); g.beginPath(); g.rect(0, AXIS, GUTTER, height - AXIS); g.clip();
  g.textBaseline = "middle"; g.font = FONT;
  state.order.forEach((resource, row) => {
    const top = AXIS + row * PAIR - state.scroll;
    if (top > height || top + PAIR < AXIS) return;
    const pinned = state.pinned.has(resource);
    g.textAlign = "left"; g.fillStyle = pinned ? ink.accent : ink.text;
    g.fillText(clipped(g, (pinned ? "● " : "") + state.lanes[resource].label, GUTTER - 78), 8, top + PAIR / 2);
    g.textAlign = "right"; g.fillStyle = ink.dim;
    g.fillText("measured", GUTTER - 8, top + 4 + BAR / 2, 62); g.fillText("predicted", GUTTER - 8, top + 5 + BAR * 1.5, 62);
  });
  g.restore();
}

function drawBars(g, state, width, height, ink) {
  const p = state.picture;
  if (!p) return;
  g.save(); g.beginPath(); g.rect(GUTTER + 1, AXIS, width - GUTTER, height - AXIS); g.clip();
  const colour = state.kinds.map((k) => (state.dark ? k.dark : k.light)), matching = state.matching;
  const labels = [];
  for (let pass = 0; pass < 2; pass++) for (let i = 0; i < p.n; i++) {
    const flags = p.flags[i];
    if ((flags & RARE ? 1 : 0) !== pass || state.hidden.has(p.kind[i])) continue;
    const y = laneTop(state, p.lane[i]);
    if (y > height || y + BAR < AXIS) continue;
    let x0 = state.x(p.t0 + p.x0[i]), x1 = state.x(p.t0 + p.x1[i]);
    if (x1 < GUTTER || x0 > width) continue;
    x0 = Math.max(x0, GUTTER - 2); x1 = Math.min(x1, width + 2);
    const wide = Math.max(x1 - x0, pass ? 2 : 1);
    let alpha = pass ? 1 : 0.22 + 0.78 * Math.min(1, p.share[i]);
    if (matching && !matching[p.name[i]]) alpha *= 0.12;
    if (state.critical && !(flags & CRITICAL)) alpha *= 0.15;
    g.globalAlpha = alpha; g.fillStyle = colour[p.kind[i]];
    g.fillRect(x0, pass ? y + BAR - 5 : y, wide > 3 && !(flags & AGGREGATED) ? wide - 0.6 : wide, pass ? 5 : BAR);
    if (!(flags & AGGREGATED) && ((state.selectedOp >= 0 && p.op[i] === state.selectedOp) || p.index[i] === state.selectedIndex)) {
      g.globalAlpha = 1; g.strokeStyle = ink.strong; g.lineWidth = p.index[i] === state.selectedIndex ? 2.5 : 1.2; g.strokeRect(x0 + 0.5, y + 0.5, Math.max(1, wide - 1.6), BAR - 1);
    }
    if (wide > 34 && !(flags & AGGREGATED) && alpha > 0.3) labels.push([x0, wide, y, i]);
  }
  g.globalAlpha = 1; g.font = FONT; g.textAlign = "left"; g.textBaseline = "middle";
  for (const [x, wide, y, i] of labels) {
    const text = state.names[p.name[i]] || "", room = Math.floor((wide - 8) / 5.9);
    g.fillStyle = state.inks[p.kind[i]]; g.fillText(text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text, x + 4, y + BAR / 2 + 0.5);
  }
  g.restore();
}

function drawMarks(g, state, width, height, ink) {
  g.save(); g.beginPath(); g.rect(GUTTER + 1, 0, width - GUTTER, height); g.clip(); g.font = FONT; g.textBaseline = "middle";
  const p = state.picture;
  if (p) for (const [t, word, dash] of [[p.measured, "measured", []], [p.predicted, "predicted", [5, 4]]]) {
    if (!(t > 0)) continue;
    const x = state.x(t);
    g.strokeStyle = ink.accent; g.setLineDash(dash); g.lineWidth = 1.4; g.beginPath(); g.moveTo(x, AXIS); g.lineTo(x, height); g.stroke(); g.setLineDash([]);
    const text = `${word} ${seconds(t)}`, w = g.measureText(text).width + 8, left = x + w > width ? x - w : x;
    const y = height - 10 - (word === "measured" ? 16 : 0);
    g.fillStyle = ink.ground; g.fillRect(left, y - 7, w, 14); g.fillStyle = ink.accent; g.textAlign = "left"; g.fillText(text, left + 4, y);
  }
  for (const a of state.arrows) {
    const x0 = state.x(a.x0), x1 = state.x(a.x1), y0 = laneTop(state, a.lane0) + BAR / 2, y1 = laneTop(state, a.lane1) + BAR / 2, bend = Math.max(18, Math.abs(x1 - x0) / 3);
    g.strokeStyle = a.binding ? ink.accent : ink.dim; g.lineWidth = a.binding ? 2 : 1.2; g.beginPath(); g.moveTo(x0, y0); g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1); g.stroke();
    g.fillStyle = g.strokeStyle; g.beginPath(); g.moveTo(x1, y1); g.lineTo(x1 - 6, y1 - 3.5); g.lineTo(x1 - 6, y1 + 3.5); g.fill();
  }
  const s = state.area;
  if (s) { const x0 = state.x(Math.min(s.t0, s.t1)), x1 = state.x(Math.max(s.t0, s.t1)); g.fillStyle = ink.accent; g.globalAlpha = 0.12; g.fillRect(x0, Math.min(s.y0, s.y1), x1 - x0, Math.abs(s.y1 - s.y0)); g.globalAlpha = 1; g.strokeStyle = ink.accent; g.lineWidth = 1; g.strokeRect(x0, Math.min(s.y0, s.y1), x1 - x0, Math.abs(s.y1 - s.y0)); }
  if (state.cursor !== null) { const x = state.x(state.cursor); g.strokeStyle = ink.dim; g.globalAlpha = 0.6; g.lineWidth = 1; g.beginPath(); g.moveTo(x, AXIS); g.lineTo(x, height); g.stroke(); g.globalAlpha = 1; }
  g.restore();
}

function drawScroll(g, state, width, height, ink) {
  const room = height - AXIS, all = state.order.length * PAIR + 8;
  if (all <= room) return;
  g.globalAlpha = 0.5; g.fillStyle = ink.dim; g.fillRect(width - 6, AXIS + 2 + (state.scroll / all) * room, 4, Math.max(16, (room / all) * room - 4)); g.globalAlpha = 1;
}

function paint(canvas, state) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  const g = canvas.getContext("2d"), ink = INK[state.dark ? "dark" : "light"];
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  state.width = width; state.height = height;
  const axis = drawFrame(g, state, width, height, ink);
  drawBars(g, state, width, height, ink);
  drawMarks(g, state, width, height, ink);
  drawAxis(g, state, width, height, ink, axis);
  drawLabels(g, state, height, ink);
  drawScroll(g, state, width, height, ink);
  state.painted = (state.painted || 0) + 1;
  canvas.dataset.painted = String(state.painted); canvas.dataset.predicted = state.picture ? String(state.picture.predicted) : "";
}
