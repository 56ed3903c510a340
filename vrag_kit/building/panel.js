// The screen of the annotation panel. It owns no state: it sends what was done, and draws the view that Python makes from the file on disk.
// Text from data is only ever set as text, never as markup.

const HELP = "arrows move, space ticks, enter or a click on a picture shows it in full size, n and p turn pages, escape closes";

const NO_ANSWER = "the clues have no answer yet"; // as Python says it

function make(tag, name, parent, properties = {}) {
  const node = Object.assign(document.createElement(tag), properties);
  node.className = name;
  parent?.append(node);
  return node;
}

function button(parent, text, action, name = "") {
  const node = make("button", name, parent, { type: "button", textContent: text });
  node.addEventListener("click", (event) => node.getAttribute("aria-disabled") !== "true" && action(event));
  return node;
}

function enable(node, on, why = "") {
  node.setAttribute("aria-disabled", String(!on));
  node.title = why;
}

function render({ model, el }) {
  const root = make("div", "vrag-annotation", el, { tabIndex: -1 });
  const top = make("div", "bar", root);
  const progress = make("span", "state", top, { role: "status" });
  const back = button(top, "‹ question", () => turn("question", { place: view.place - 1 }));
  const forward = button(top, "question ›", () => turn("question", { place: view.place + 1 }));
  const species = make("div", "species", root);
  const question = make("div", "question", root, { role: "heading", ariaLevel: "3" });
  const explanation = make("div", "explanation", root);
  const facts = make("div", "facts", root);
  const messages = [make("div", "message", root, { role: "alert" })]; // above the grid and below it: one of them is in sight
  make("div", "help", root, { textContent: HELP });
  const grid = make("div", "grid", root, { role: "group", ariaLabel: "images; a tick means clue" });
  const pager = make("div", "bar", root);
  const previous = button(pager, "‹ page", () => turn("page", { page: view.page - 1 }));
  const where = make("span", "", pager);
  const next = button(pager, "page ›", () => turn("page", { page: view.page + 1 }));
  const fields = make("div", "fields", root);
  const answer = field("answer", "Answer, as the clues show it", "several accepted answers are separated by |");
  const suggestion = field("suggestion", "Suggest a new question", "optional");
  messages.push(make("div", "message", root));
  const decide = make("div", "bar", root);
  const why = make("span", "why", decide);
  const skip = button(decide, "skip", (event) => event.detail < 2 && turn("skip")); // the second click of two was meant for the question before
  const done = button(decide, "done", finish, "primary");
  const reopen = button(decide, "reopen", () => send("reopen"), "primary");
  const full = make("dialog", "vrag-annotation-full", root, { ariaLabel: "picture in full size" });
  const large = make("img", "", full);
  const caption = make("div", "caption", full);

  let view = {}, tiles = [], focused = 0, open = -1, moved = false, waiting = 0, page = "", sure = "";
  const pictures = new Map(); // image -> address of its thumbnail
  const addresses = [];

  function field(name, label, hint) {
    const box = make("label", "field", fields);
    make("span", "", box, { textContent: label }).append(make("small", "", null, { textContent: ` (${hint})` }));
    const input = make("input", "", box, { type: "text", spellcheck: true });
    input.addEventListener("input", () => {
      input.unsaved = true;
      clearTimeout(input.timer);
      input.timer = setTimeout(save, 500);
      buttons();
    });
    input.addEventListener("blur", save);
    input.addEventListener("keydown", (event) => event.key === "Enter" && save());
    return Object.assign(input, { box, called: name });
  }

  function save() {
    if (answer.unsaved || suggestion.unsaved) send("text");
  }

  function send(type, more = {}) {
    const words = {};
    for (const input of [answer, suggestion]) {
      clearTimeout(input.timer);
      if (input.unsaved) words[input.called] = input.value;
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => tell("no answer from the kernel yet: nothing is saved until it answers"), 3000);
    model.send({ type, question: view.question_id, ...words, ...more });
  }

  function turn(type, more = {}) {
    moved = true;
    send(type, more);
  }

  function finish(event) {
    if (event.detail > 1) return;
    if (!view.clues && sure !== view.question_id) {
      sure = view.question_id; // done without a clue is said twice: one more click than for the question before must not decide this one
      return buttons();
    }
    sure = "";
    turn("done");
  }

  function tell(words) {
    for (const node of messages) node.textContent = words;
  }

  function tick(place) {
    const tile = view.tiles[place];
    if (tile && view.status === "open") send("tick", { image: tile.image, clue: !tile.clue });
  }

  function draw() {
    const asked = view.question_id;
    view = model.get("view");
    clearTimeout(waiting);
    if (page !== `${view.question_id} ${view.page}`) build();
    tell(view.message);
    progress.textContent = view.progress;
    species.textContent = view.called;
    question.textContent = view.question;
    explanation.textContent = view.explanation;
    facts.textContent = `feature: ${view.feature}`;
    where.textContent = `page ${view.page + 1} of ${view.pages}`;
    for (const input of [answer, suggestion]) {
      const saved = view[input.called];
      if (asked !== view.question_id || saved === input.value.trim()) input.unsaved = false;
      if (!input.unsaved && input.value.trim() !== saved) input.value = saved;
      input.disabled = view.status !== "open";
    }
    view.tiles.forEach((tile, place) => paint(tiles[place], tile));
    buttons();
    if (open >= 0) show(open);
    moved = false;
  }

  function buttons() {
    const unanswered = view.clues > 0 && !answer.value.trim() ? NO_ANSWER : ""; // what was typed goes with "done", saved or not
    const left = (view.not_done === NO_ANSWER ? "" : view.not_done) || unanswered, working = view.status === "open";
    answer.box.hidden = !view.clues && !answer.value && document.activeElement !== answer;
    enable(back, view.place > 0);
    enable(forward, view.place < view.places - 1);
    enable(previous, view.page > 0);
    enable(next, view.page < view.pages - 1);
    if (view.clues || sure !== view.question_id) sure = "";
    done.textContent = sure ? "no picture shows it: done" : "done";
    enable(done, !left, left);
    enable(skip, !view.not_skipped, view.not_skipped);
    done.hidden = skip.hidden = !working;
    reopen.hidden = working;
    why.textContent = working ? [left && `not done: ${left}`, view.not_skipped].filter(Boolean).join("; ") : `this question is ${view.status}; reopen it to change it`;
  }

  function build() {
    const had = root.contains(document.activeElement) && !fields.contains(document.activeElement);
    page = `${view.question_id} ${view.page}`;
    addresses.splice(0).forEach((address) => URL.revokeObjectURL(address));
    pictures.clear();
    open = -1;
    full.close();
    tiles = view.tiles.map(tileOf);
    grid.replaceChildren(...tiles.map((tile) => tile.node));
    focused = 0;
    rove();
    if (had && moved) tiles[0].node.focus({ preventScroll: true });
    if (moved && root.getBoundingClientRect().top < 0) root.scrollIntoView({ block: "start" });
    model.send({ type: "thumbnails" });
    seen();
  }

  function tileOf(tile, place) {
    const node = make("div", "tile", null, { role: "checkbox" });
    const frame = make("div", "frame", node);
    const image = make("img", "", frame, { alt: "", draggable: false });
    const problem = make("div", "problem", frame);
    const strip = make("div", "strip", node);
    make("span", "box", strip);
    make("span", "", strip, { textContent: "clue" });
    make("span", "number", strip, { textContent: tile.number });
    frame.addEventListener("click", () => { focus(place); show(place); });
    strip.addEventListener("click", () => { focus(place); tick(place); });
    node.addEventListener("focus", () => { focused = place; rove(); });
    return { node, image, problem };
  }

  function paint({ node, problem }, tile) {
    node.setAttribute("aria-checked", String(tile.clue));
    node.setAttribute("aria-disabled", String(Boolean(tile.problem) || view.status !== "open"));
    node.setAttribute("aria-label", [`image ${tile.number}, clue`, tile.problem && "cannot be shown"].filter(Boolean).join(", "));
    node.title = tile.image;
    problem.textContent = tile.problem && `cannot be shown: ${tile.problem}`;
  }

  function seen() {
    if (view.tiles.every((tile) => tile.problem || pictures.has(tile.image))) model.send({ type: "seen", question: view.question_id, page: view.page });
  }

  function rove() {
    tiles.forEach((tile, place) => { tile.node.tabIndex = place === focused ? 0 : -1; });
  }

  function focus(place) {
    tiles[Math.min(Math.max(0, place), tiles.length - 1)]?.node.focus();
  }

  function show(place) {
    const tile = view.tiles[place];
    if (!tile || tile.problem) return;
    if (open !== place || !full.open) {
      large.src = pictures.get(tile.image) ?? "";
      model.send({ type: "picture", image: tile.image });
    }
    open = place;
    const mark = tile.clue ? "✓ clue" : view.status === "open" ? "space ticks it as a clue" : "no clue";
    caption.textContent = [`image ${tile.number}`, mark, tile.image.split("/").pop()].filter(Boolean).join(" · ");
    full.classList.toggle("clue", tile.clue);
    if (!full.open) full.showModal();
  }

  function step(by) {
    let place = open + by;
    while (view.tiles[place]?.problem) place += by;
    if (view.tiles[place]) show(place);
  }

  function columns() {
    const first = tiles[0].node.offsetTop;
    return tiles.filter((tile) => tile.node.offsetTop === first).length;
  }

  function press(event) {
    const { key, target } = event;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "s") return; // JupyterLab saves the notebook
    event.stopPropagation(); // else JupyterLab takes letters for commands: "d d" deletes the cell
    if (target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const onTile = target.closest(".tile") !== null, act = actions(onTile)[key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function actions(onTile) {
    const turns = (by) => () => view.page + by >= 0 && view.page + by < view.pages && turn("page", { page: view.page + by });
    if (full.open) return { ArrowLeft: () => step(-1), ArrowRight: () => step(1), " ": () => tick(open), Enter: () => full.close() };
    const pages = { PageDown: turns(1), n: turns(1), PageUp: turns(-1), p: turns(-1) };
    if (!onTile) return pages;
    return { ...pages, ArrowLeft: () => focus(focused - 1), ArrowRight: () => focus(focused + 1), ArrowUp: () => focused >= columns() && focus(focused - columns()),
             ArrowDown: () => focused + columns() < tiles.length && focus(focused + columns()), Home: () => focus(0), End: () => focus(tiles.length - 1),
             " ": () => tick(focused), Enter: () => show(focused) };
  }

  function receive(content, buffers) {
    const place = view.tiles.findIndex((tile) => tile.image === content.image);
    if (place < 0) return;
    const address = URL.createObjectURL(new Blob([buffers[0]], { type: "image/jpeg" }));
    addresses.push(address);
    if (content.type === "thumbnail") {
      pictures.set(content.image, address);
      tiles[place].image.src = address;
      seen();
    } else if (open === place) {
      large.src = address;
    }
  }

  root.addEventListener("keydown", press);
  for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation());
  full.addEventListener("click", () => full.close());
  full.addEventListener("close", () => {
    if (open >= 0) focus(open);
    open = -1;
  });
  model.on("change:view", draw);
  model.on("msg:custom", receive);
  draw();
  return () => {
    save();
    model.off("change:view", draw);
    model.off("msg:custom", receive);
    addresses.forEach((address) => URL.revokeObjectURL(address));
  };
}

export default { render };
