// The console's one script: keys, live times, copying, saved places. Everything works without it.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // "4 min ago" grows older while the page is open.
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const span = (seconds) => {
    for (const [unit, size] of units) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
    return `${seconds} s`;
  };
  const skew = Date.parse(document.documentElement.dataset.now || "") - Date.now() || 0;
  const tick = () => {
    for (const time of $$("time[data-live]")) {
      const seconds = Math.floor((Date.now() + skew - Date.parse(time.dateTime)) / 1000);
      if (Math.abs(seconds) >= 30 * 86400) continue;
      const text = seconds < -1 ? `in ${span(-seconds)}` : seconds < 5 ? "just now" : `${span(seconds)} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(tick, 5000);

  // A shortened identifier is copied whole.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || !event.clipboardData) return;
    const range = selection.getRangeAt(0);
    const from = range.startContainer.parentElement && range.startContainer.parentElement.closest("[data-whole]");
    const part = range.cloneContents();
    const ids = $$("[data-whole]", part);
    if (from && from.contains(range.endContainer)) event.clipboardData.setData("text/plain", from.dataset.whole);
    else if (ids.length) {
      for (const id of ids) id.textContent = id.dataset.whole;
      event.clipboardData.setData("text/plain", part.textContent.trim());
    } else return;
    event.preventDefault();
  });

  // Rows: j and k move, Enter opens, a click into the first cell as well.
  const rows = () => $$("table.rows tbody tr[data-row]");
  let at = -1;
  const mark = (index) => {
    const all = rows();
    if (!all.length) return;
    at = Math.max(0, Math.min(index, all.length - 1));
    for (const row of all) row.classList.remove("at");
    all[at].classList.add("at");
    const link = $("a", all[at]);
    if (link) link.focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
  };
  const openMenus = () => $$("details.adder[open], details.account[open], details.menu[open]");
  document.addEventListener("focusin", (event) => {
    // A menu that the focus has left closes: it would cover what has the focus now.
    for (const menu of openMenus()) if (!menu.contains(event.target) && event.target.id !== "main") menu.open = false;
    const row = event.target.closest && event.target.closest("tr[data-row]");
    if (!row) return;
    at = rows().indexOf(row);
    for (const other of rows()) other.classList.toggle("at", other === row);
  });
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("tr[data-row] > :first-child");
    if (cell && !event.target.closest("a, button, input, label") && !getSelection().toString()) {
      const link = $("a", cell.parentElement);
      if (link) link.click();
    }
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });

  // Keys press what carries them: <button data-key="a">, <a data-key="n">, <summary data-key="l">.
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const { key, target } = event;
    if (key === "Escape") {
      for (const menu of openMenus()) {
        menu.open = false;
        $("summary", menu).focus();
      }
      if (typing(target)) target.blur();
      return;
    }
    if (typing(target) || $("dialog[open]")) return;
    // A key that is held down moves on in a table; it decides nothing about pages nobody has seen yet.
    if (event.repeat && key !== "j" && key !== "k") return;
    if (key === "j") mark(at + 1);
    else if (key === "k") mark(at < 0 ? 0 : at - 1);
    else if (key === "Enter" && at >= 0 && target === document.body) $("a", rows()[at]).click();
    else if (key === "/" && $("#find")) $("#find").focus();
    else if (key === "?" && $("#keys")) $("#keys").showModal();
    else {
      const carrier = /^[a-z]$/.test(key) && $(`[data-key="${key}"]:not([disabled])`);
      if (!carrier) return;
      carrier.click();
      const details = carrier.closest("details");
      const first = details && details.open && $("input:not([type=hidden]), select, textarea", details);
      if (first) first.focus();
    }
    event.preventDefault();
  });

  // The second half of a double click is no decision about the review that came after the first half.
  const shownAt = performance.now();
  document.addEventListener("click", (event) => {
    const isEarly = event.detail > 0 && performance.now() - shownAt < 600 && $(".toast");
    if (isEarly && event.target.closest(".head .actions button")) event.preventDefault();
  });

  // What can be taken back is offered for as long as it can.
  const toast = $(".toast[data-left-ms]");
  if (toast) setTimeout(() => toast.remove(), Number(toast.dataset.leftMs));

  // Choosing from a list that says so sends its form at once.
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  // A form is sent once. One that somebody typed into waits until the service answers: a browser that reaches
  // nobody shows a page of its own, and what was typed is lost.
  const isTyped = (field) => field.matches("textarea, input:not([type=hidden])") && field.value !== field.defaultValue;
  const isThere = async () => {
    try {
      const asked = { method: "HEAD", cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(5000) };
      return (await fetch("/console/sign-in", asked)).status < 500;
    } catch (error) {
      return error.name === "TimeoutError"; // It is slow: sending the form loses nothing while the page is there.
    }
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target, by = event.submitter;
    if (form.method !== "post" || form.dataset.asked) return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 4000);
    if (!$("#stale") || ![...form.elements].some(isTyped)) return;
    event.preventDefault();
    if (await isThere()) {
      say("");
      form.dataset.asked = "1";
      form.requestSubmit(by);
      delete form.dataset.asked;
    } else {
      delete form.dataset.sent;
      say("unsent");
    }
  });
  // The notice of a change is shown once: a reload shows the page alone.
  const address = new URL(location.href);
  if (address.searchParams.has("notice")) {
    address.searchParams.delete("notice");
    address.searchParams.delete("count");
    history.replaceState(null, "", address);
  }
  // A part that cannot ask for itself any more says so, until it can.
  const say = (name) => {
    const place = $("#stale");
    if (!place || place.dataset.said === name) return;
    place.dataset.said = name;
    place.replaceChildren(...(name ? [$(`#stale-${name}`).content.cloneNode(true)] : []));
  };
  for (const failed of ["htmx:sendError", "htmx:timeout", "htmx:responseError"])
    document.addEventListener(failed, ({ detail: { xhr } }) => say(xhr.status === 401 ? "ended" : "away"));
  document.addEventListener("htmx:beforeSwap", () => say(""));
  // What is swapped in keeps the focus where it was.
  let kept = "";
  document.addEventListener("htmx:beforeSwap", () => { kept = document.activeElement ? document.activeElement.id : ""; });
  document.addEventListener("htmx:afterSwap", () => {
    tick();
    const again = kept && $(`#${CSS.escape(kept)}`);
    if (again) again.focus();
    // What had the focus is gone, as the button is that cancels what has ended.
    else if (kept && document.activeElement === document.body) $("#main").focus({ preventScroll: true });
  });
})();
