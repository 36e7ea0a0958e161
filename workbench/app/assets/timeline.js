// Component: wires the model's parameters to the picture. Draws locally at once; the server refines a window twice as wide.
const KEYS = [["W S, wheel", "zoom"], ["A D, drag", "pan"], ["F", "fit all, or the selected area"], ["shift + drag", "select an area, get its statistics"], ["click", "details and dependencies"],
  ["double click", "zoom to an event"], ["/", "search"], ["N P", "next, previous match"], ["C", "critical path"], ["Esc", "clear"], ["click a lane", "pin it to the top"], ["?", "this help"]];

const LOWEST = 132, HIGHEST = 380;  // height of the picture [px]: it follows the lanes, and scrolls beyond

function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) if (key === "class") out.className = value; else if (key.startsWith("on")) out.addEventListener(key.slice(2), value); else out.setAttribute(key, value);
  out.append(...children);
  return out;
}

function rows(list) {
  const table = element("table");
  for (const [key, value] of list) table.append(element("tr", {}, element("td", {}, key), element("td", {class: "text"}, String(value))));
  return table;
}

function area(stats) {
  const table = element("table"), head = ["kind", "count", "inside", "sum", "mean", "min", "max"];
  table.append(element("tr", {}, ...head.map((h) => element("th", {}, h))));
  for (const r of stats.rows) table.append(element("tr", {}, ...[r.kind, r.count.toLocaleString("en"), ...[r.inside_s, r.sum_s, r.mean_s, r.min_s, r.max_s].map((v) => seconds(v))].map((v) => element("td", {}, String(v)))));
  return table;
}

function textInk(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04 ? c / 12.9 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.3 ? "#101418" : "#FFFFFF";
}

export function render({model}) {
  const state = {t0: 0, t1: 1, end: 1, scroll: 0, picture: null, lanes: [], order: [], rowOf: [], names: [], kinds: model.kinds, hidden: new Set(), pinned: new Set(), critical: false, matching: null,
    selectedOp: -1, selectedIndex: -1, arrows: [], area: null, cursor: null, dark: model.dark, epoch: -1, width: 800, height: 300, inks: []};
  state.x = (t) => GUTTER + ((t - state.t0) / (state.t1 - state.t0)) * (state.width - GUTTER);
  state.t = (x) => state.t0 + ((x - GUTTER) / (state.width - GUTTER)) * (state.t1 - state.t0);
  const canvas = element("canvas", {tabindex: "0", role: "img", "aria-label": "Timeline: measured above predicted. Press ? for keys."});
  const tip = element("div", {class: "tip", hidden: ""}), card = element("div", {class: "card", hidden: ""}), note = element("div", {class: "note", hidden: ""});
  const keys = element("div", {class: "keys", hidden: ""}, element("h4", {}, "Keys (click the timeline first)"), element("button", {class: "close", "aria-label": "close", onclick: () => { keys.hidden = true; }}, "×"));
  const half = Math.ceil(KEYS.length / 2), pair = ([k, what]) => [element("td", {}, element("kbd", {}, k)), element("td", {class: "text"}, what)];
  const table = element("table"); for (let i = 0; i < half; i++) table.append(element("tr", {}, ...pair(KEYS[i]), ...pair(KEYS[i + half]))); keys.append(table);
  const empty = element("div", {class: "empty"}, model.empty), search = element("input", {placeholder: "Search events", type: "search", "aria-label": "search events"}), found = element("span", {class: "found"});
  const critical = element("button", {"aria-pressed": "false", title: "Show only what sets the length of the step (C)", onclick: () => { api.toggleCritical(); api.draw(); }}, "Critical path");
  const legend = element("span");
  const bar = element("div", {class: "bar"}, search, found, critical, element("button", {title: "Fit all (F)", onclick: () => { fit(state, 0, state.end); api.moved(); }}, "Fit"), element("button", {title: "Keys (?)", "aria-label": "keys", onclick: () => api.help()}, "?"), note, element("span", {class: "grow"}), legend);
  const stage = element("div", {class: "stage"}, canvas, empty, card, keys, tip), root = element("div", {class: "wb"}, bar, stage);
  let frame = 0, asked = 0, askedView = "";
  const api = {
    send: (message) => model.send_msg(message),
    draw: () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; paint(canvas, state); }); },
    moved: () => { clampView(state); api.draw(); clearTimeout(asked); asked = setTimeout(api.ask, 40); },
    ask: () => {
      const view = `${state.t0} ${state.t1} ${canvas.clientWidth} ${state.epoch}`;
      if (view === askedView || canvas.clientWidth < 10 || state.epoch < 0) return;
      askedView = view; api.send({type: "view", t0: state.t0, t1: state.t1, pixels: Math.max(50, canvas.clientWidth - GUTTER)});
    },
    hover: (i, x, y) => {
      tip.hidden = i < 0;
      if (i < 0) return;
      const p = state.picture, long = p.x1[i] - p.x0[i], folded = p.flags[i] & AGGREGATED;
      tip.replaceChildren(element("b", {}, folded ? `${p.flags[i] & RARE ? `${state.kinds[p.kind[i]].word} among ${p.count[i]} events` : `${p.count[i]} events, mostly ${state.kinds[p.kind[i]].word}`}` : state.names[p.name[i]] || "?"), element("br"),
        folded ? `busy ${(100 * Math.min(1, p.share[i])).toFixed(1)} % of ${seconds(long)}; longest: ${state.names[p.name[i]]}` : `${state.kinds[p.kind[i]].word}, ${p.lane[i] & 1 ? "predicted" : "measured"}${p.count[i] === 1 && p.share[i] < 1 ? "" : `, ${seconds(long)}`}`);
      tip.style.left = `${Math.max(0, Math.min(x + 14, state.width - tip.offsetWidth - 6))}px`; tip.style.top = `${y + 18 + tip.offsetHeight > state.height ? Math.max(0, y - tip.offsetHeight - 8) : y + 18}px`;
    },
    label: (row, x, y) => {
      const lane = state.lanes[state.order[row]];
      tip.hidden = !lane;
      if (lane) { tip.textContent = `${lane.label} (click to pin to the top)`; tip.style.left = `${x + 14}px`; tip.style.top = `${y + 14}px`; }
    },
    choose: (i) => { if (i < 0) api.clear(); else if (state.picture.flags[i] & AGGREGATED) { const p = state.picture; const w = p.x1[i] - p.x0[i]; fit(state, p.t0 + p.x0[i] - 2 * w, p.t0 + p.x1[i] + 2 * w); api.moved(); } else { state.selectedIndex = state.picture.index[i]; api.send({type: "click", index: state.selectedIndex}); api.draw(); } },
    clear: () => { state.selectedIndex = -1; state.arrows = []; state.area = null; card.hidden = true; keys.hidden = true; api.send({type: "clear"}); api.draw(); },
    pin: (resource) => { if (!state.pinned.delete(resource)) state.pinned.add(resource); arrange(); api.draw(); },
    toggleCritical: () => { state.critical = !state.critical; critical.setAttribute("aria-pressed", String(state.critical)); },
    help: () => { keys.hidden = !keys.hidden; }, search: () => search.focus(),
    find: (way) => { if (search.value) api.send({type: "find", text: search.value, way, after: state.selectedIndex}); },
  };
  const arrange = () => {
    const all = state.lanes.map((_, i) => i);
    state.order = [...all.filter((i) => state.pinned.has(i)), ...all.filter((i) => !state.pinned.has(i))];
    state.rowOf = []; state.order.forEach((resource, row) => { state.rowOf[resource] = row; });
    stage.style.height = `${Math.min(HIGHEST, Math.max(LOWEST, AXIS + state.order.length * PAIR + 36))}px`;
  };
  const show = (title, body) => { card.replaceChildren(element("h4", {}, title), element("button", {class: "close", "aria-label": "close", onclick: () => api.clear()}, "×"), body); card.hidden = false; };
  const colours = () => {
    root.classList.toggle("dark", model.dark); state.dark = model.dark;
    state.inks = state.kinds.map((k) => textInk(model.dark ? k.dark : k.light));
    legend.replaceChildren(...state.kinds.map((k, i) => element("button", {class: "kind", "aria-pressed": String(state.hidden.has(i)), title: `show or hide: ${k.word}`, onclick: () => { if (!state.hidden.delete(i)) state.hidden.add(i); colours(); }},
      (() => { const box = element("i"); box.style.background = model.dark ? k.dark : k.light; return box; })(), k.word)));
    api.draw();
  };
  const receive = () => {
    const picture = decode(model.buffer);
    empty.hidden = Boolean(picture && picture.total); empty.textContent = model.empty;
    if (!picture) return;
    state.picture = picture; state.end = picture.end;
    if (state.lanes !== model.lanes) { state.lanes = model.lanes; state.names = model.names; state.pinned.clear(); arrange(); match(); }
    if (state.epoch !== picture.epoch) { state.epoch = picture.epoch; state.selectedIndex = -1; state.arrows = []; state.area = null; card.hidden = true; fit(state, 0, picture.end); clampView(state); askedView = `${state.t0} ${state.t1} ${canvas.clientWidth} ${state.epoch}`; if (picture.shown !== Math.max(50, canvas.clientWidth - GUTTER)) { askedView = ""; api.ask(); } }
    note.hidden = !picture.aggregated; note.textContent = "Aggregated: shade is the busy share. Zoom in for single events.";
    api.draw();
  };
  const match = () => {
    const text = search.value.trim().toLowerCase();
    state.matching = text ? state.names.map((name) => name.toLowerCase().includes(text)) : null;
    found.textContent = text ? `${state.matching.filter(Boolean).length} names` : "";
    api.draw();
  };
  search.addEventListener("input", match);
  search.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); api.find(e.shiftKey ? -1 : 1); } else if (e.key === "Escape") { search.value = ""; match(); canvas.focus(); } });
  model.on("change:buffer", receive);
  model.on("change:dark", colours);
  model.on("change:empty", () => { empty.textContent = model.empty; });
  model.on("change:selected_op", () => { state.selectedOp = model.selected_op; api.draw(); });
  model.on("msg:custom", (m) => {
    if (m.type === "details") { state.arrows = m.arrows; show(m.title, rows(m.rows)); api.draw(); }
    else if (m.type === "stats") show(m.title, m.rows.length ? area(m) : element("span", {}, "Nothing lies in this area."));
    else if (m.type === "found") { found.textContent = m.text; if (m.index >= 0) { state.selectedIndex = m.index; const half = Math.max(4 * (m.t1 - m.t0), (state.t1 - state.t0) / 2); const mid = (m.t0 + m.t1) / 2; state.t0 = mid - half; state.t1 = mid + half; state.scroll = AXIS + state.rowOf[m.lane >> 1] * PAIR - state.height / 2; api.moved(); } }
  });
  listen(canvas, state, api);
  const sizes = new ResizeObserver(() => { api.moved(); });
  sizes.observe(canvas);
  model.on("remove", () => sizes.disconnect());
  colours(); receive();
  return root;
}
