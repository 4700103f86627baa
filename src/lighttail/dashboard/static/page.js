// Keeps the page of an experiment fresh: asks for its panels every two seconds and replaces those that have
// changed. The server makes the panels, with every text escaped; without this script the page shows the same.
"use strict";

(() => {
  const EVERY = 2000; // milliseconds between two looks
  const SLOWEST = 30000; // the longest pause after failures
  const PATIENCE = 8000; // for one answer
  const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone || "this computer's time zone";
  const page = document.querySelector("[data-feed]");
  const fresh = document.getElementById("fresh");
  const seen = new Map(); // what the server said last, by panel
  let failures = 0;
  let shownAt = null; // when the panels on the screen were made
  let timer = null;

  // A time of the reader's own time zone, such as 2026-11-16 15:58:07.
  function written(date) {
    const two = (number) => String(number).padStart(2, "0");
    const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
    return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
  }

  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.valueOf())) {
        time.title = time.dateTime;
        time.textContent = written(at).slice(0, time.textContent.length); // with seconds if it had them
      }
    }
  }

  // When the panels were made, and in which time zone all times on the page are.
  const momentOf = (date) => `${written(date)} (all times: ${ZONE})`;

  // Replace the content of a panel; keep what is open, and the keyboard where it was.
  function replace(panel, html) {
    const held = panel.contains(document.activeElement) ? document.activeElement : null;
    const places = held ? [...panel.querySelectorAll("a, button, input, [tabindex], summary")].indexOf(held) : -1;
    const opened = [...panel.querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...panel.querySelectorAll("ol.events, .scroll")].map((one) => [one.scrollTop, one.scrollLeft]);
    panel.innerHTML = html;
    [...panel.querySelectorAll("details")].forEach((one, place) => { one.open = Boolean(opened[place]); });
    [...panel.querySelectorAll("ol.events, .scroll")].forEach((one, place) => {
      if (scrolled[place]) [one.scrollTop, one.scrollLeft] = scrolled[place];
    });
    localTimes(panel);
    if (places >= 0) {
      const again = panel.querySelectorAll("a, button, input, [tabindex], summary")[places];
      if (again) again.focus({ preventScroll: true });
    }
  }

  // A question that is open must not vanish under the reader's hand.
  const isAsking = (panel) => Boolean(panel.querySelector("[popover]:popover-open"));

  function show(answer) {
    for (const [name, html] of Object.entries(answer.parts)) {
      const panel = page.querySelector(`[data-part="${CSS.escape(name)}"]`);
      if (panel && seen.get(name) !== html && !isAsking(panel)) {
        if (seen.has(name) || panel.innerHTML !== html) replace(panel, html);
        seen.set(name, html);
      }
    }
    shownAt = new Date(answer.now * 1000);
    say(`As of ${momentOf(shownAt)}`, false);
  }

  // The state of the connection. A screen reader hears it only if it is lost, and when it is back.
  function say(text, lost) {
    const was = fresh.classList.contains("lost");
    fresh.setAttribute("role", lost || was ? "status" : "none");
    fresh.classList.toggle("lost", lost);
    fresh.textContent = was && !lost ? `The connection is back. ${text}` : text;
  }

  function lose(why) {
    failures += 1;
    const at = shownAt ? momentOf(shownAt) : "the time when it was loaded";
    say(`${why} Shown is the state of ${at}.`, true);
  }

  async function look() {
    const patience = new AbortController();
    const end = setTimeout(() => patience.abort(), PATIENCE);
    try {
      const from = page.dataset.feed + window.location.search;
      const found = await fetch(from, { signal: patience.signal, cache: "no-store", credentials: "same-origin" });
      if (found.status === 401 || found.status === 403) {
        lose("The server does not accept the key any more.");
      } else if (!found.ok) {
        lose("The server cannot answer.");
      } else {
        show(await found.json());
        failures = 0;
      }
    } catch {
      lose("Connection lost.");
    } finally {
      clearTimeout(end);
    }
  }

  async function tick() {
    if (!document.hidden) await look();
    timer = setTimeout(tick, Math.min(EVERY * 2 ** failures, SLOWEST));
  }

  function hurry() {
    if (document.hidden) return;
    failures = 0;
    clearTimeout(timer);
    tick();
  }

  localTimes(document);
  if (page && fresh) {
    const first = fresh.querySelector("time");
    if (first) {
      shownAt = new Date(first.dateTime);
      say(`As of ${momentOf(shownAt)}`, false);
    }
    timer = setTimeout(tick, EVERY);
    document.addEventListener("visibilitychange", hurry);
    window.addEventListener("online", hurry);
  }
})();
