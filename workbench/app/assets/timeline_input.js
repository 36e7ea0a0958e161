// Input: mouse and keys move the window, pick an event or an area, and tell the server what is needed.
function pick(state, px, py) {
  const p = state.picture;
  if (!p || px < GUTTER || py < AXIS) return -1;
  const t = state.t(px), slack = 2 * (state.t1 - state.t0) / Math.max(1, state.width - GUTTER);
  let best = -1, bestWidth = Infinity;
  for (let i = 0; i < p.n; i++) {
    if (state.hidden.has(p.kind[i])) continue;
    const y = laneTop(state, p.lane[i]);
    if (py < y || py > y + BAR) continue;
    const a = p.t0 + p.x0[i], b = p.t0 + p.x1[i];
    if (t >= a - slack && t <= b + slack) { const inside = t >= a && t <= b ? 0 : 1e9; if (b - a + inside < bestWidth) { best = i; bestWidth = b - a + inside; } }
  }
  return best;
}

function clampView(state) {
  const span = Math.min(Math.max(state.t1 - state.t0, 2e-9), 1.3 * state.end), middle = Math.min(Math.max((state.t0 + state.t1) / 2, 0), state.end);
  state.t0 = middle - span / 2; state.t1 = middle + span / 2;
  const most = Math.max(0, AXIS + state.order.length * PAIR + 8 - (state.height || 0));
  state.scroll = Math.min(Math.max(state.scroll, 0), most);
}

function zoom(state, factor, at) {
  const t = at === undefined ? (state.t0 + state.t1) / 2 : at;
  state.t0 = t + (state.t0 - t) * factor; state.t1 = t + (state.t1 - t) * factor;
}

function fit(state, low, high) {
  const margin = 0.02 * (high - low);
  state.t0 = low - margin; state.t1 = high + margin;
}

function lanesBetween(state, y0, y1) {
  const low = Math.min(y0, y1), high = Math.max(y0, y1), out = [];
  for (let lane = 0; lane < 2 * state.lanes.length; lane++) { const y = laneTop(state, lane); if (y + BAR >= low && y <= high) out.push(lane); }
  return out;
}

function listen(canvas, state, api) {
  let drag = null;
  const place = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
  canvas.addEventListener("wheel", (e) => {
    const [x] = place(e);
    if (x < GUTTER || e.shiftKey) { const before = state.scroll; state.scroll += e.deltaY || e.deltaX; clampView(state); if (before !== state.scroll) e.preventDefault(); api.draw(); return; }
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const d = e.deltaX * (state.t1 - state.t0) / (state.width - GUTTER); state.t0 += d; state.t1 += d; } else zoom(state, Math.exp(Math.max(-120, Math.min(120, e.deltaY)) * 0.0025), state.t(x));
    api.moved();
  }, {passive: false});
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    const [x, y] = place(e);
    canvas.focus({preventScroll: true}); canvas.setPointerCapture(e.pointerId);
    drag = {x, y, t0: state.t0, t1: state.t1, scroll: state.scroll, far: false, area: e.shiftKey && x > GUTTER};
    if (drag.area) state.area = {t0: state.t(x), t1: state.t(x), y0: y, y1: y};
  });
  canvas.addEventListener("pointermove", (e) => {
    const [x, y] = place(e);
    state.cursor = x > GUTTER ? state.t(x) : null;
    if (!drag) { if (x < GUTTER) api.label(Math.floor((y - AXIS + state.scroll) / PAIR), x, y); else api.hover(pick(state, x, y), x, y); api.draw(); return; }
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4) drag.far = true;
    if (drag.area) { state.area.t1 = state.t(Math.max(GUTTER, x)); state.area.y1 = Math.max(AXIS, y); api.draw(); return; }
    if (!drag.far) return;
    const d = (drag.x - x) * (drag.t1 - drag.t0) / (state.width - GUTTER);
    state.t0 = drag.t0 + d; state.t1 = drag.t1 + d; state.scroll = drag.scroll + drag.y - y; canvas.style.cursor = "grabbing";
    api.hover(-1); api.moved();
  });
  const stop = (e) => {
    if (!drag) return;
    const [x, y] = place(e), was = drag;
    drag = null; canvas.style.cursor = "";
    if (was.area && was.far) { const a = state.area; api.send({type: "select", t0: Math.min(a.t0, a.t1), t1: Math.max(a.t0, a.t1), lanes: lanesBetween(state, a.y0, a.y1)}); return; }
    if (was.area) { state.area = null; api.draw(); }
    if (was.far) return;
    if (x < GUTTER) { const row = Math.floor((y - AXIS + state.scroll) / PAIR); if (state.order[row] !== undefined) api.pin(state.order[row]); return; }
    api.choose(pick(state, x, y));
  };
  canvas.addEventListener("pointerup", stop);
  canvas.addEventListener("pointercancel", () => { drag = null; canvas.style.cursor = ""; });
  canvas.addEventListener("pointerleave", () => { state.cursor = null; api.hover(-1); api.draw(); });
  canvas.addEventListener("dblclick", (e) => {
    const i = pick(state, ...place(e)), p = state.picture;
    if (i < 0) return;
    const a = p.t0 + p.x0[i], b = p.t0 + p.x1[i], w = Math.max(b - a, 1e-9);
    fit(state, a - 0.6 * w, b + 0.6 * w); api.moved();
  });
  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const span = state.t1 - state.t0, centre = state.cursor === null ? undefined : state.cursor;
    const acts = {
      w: () => zoom(state, 0.7, centre), s: () => zoom(state, 1 / 0.7, centre),
      a: () => { state.t0 -= 0.2 * span; state.t1 -= 0.2 * span; }, d: () => { state.t0 += 0.2 * span; state.t1 += 0.2 * span; },
      f: () => { const s = state.area; if (s) fit(state, Math.min(s.t0, s.t1), Math.max(s.t0, s.t1)); else fit(state, 0, state.end); },
      c: () => api.toggleCritical(), n: () => api.find(1), p: () => api.find(-1), "?": () => api.help(), escape: () => api.clear(), "/": () => api.search(),
      arrowup: () => { state.scroll -= PAIR; }, arrowdown: () => { state.scroll += PAIR; },
    };
    const act = acts[e.key.toLowerCase()] || {arrowleft: acts.a, arrowright: acts.d}[e.key.toLowerCase()];
    if (act) { e.preventDefault(); act(); api.moved(); }
  });
}
