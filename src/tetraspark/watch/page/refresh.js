"use strict";
(() => {
  const PERIOD = 2000, PATIENCE = 8000;
  const byId = (id) => document.getElementById(id);
  const shown = {};
  let age = parseFloat(byId("fresh").dataset.age), told = performance.now(), lostAt = null;
  let title = document.title, asking = false;
  document.documentElement.classList.add("live");

  const since = (milliseconds) => {
    const s = Math.max(0, Math.floor(milliseconds / 1000));
    const two = (large, unit, small, smaller) => `${Math.floor(large)} ${unit}` + (small ? ` ${small} ${smaller}` : "");
    if (s < 60) return `${s} s`;
    return s < 3600 ? two(s / 60, "min", s % 60, "s") : two(s / 3600, "h", Math.floor((s % 3600) / 60), "min");
  };

  // Only what changed is replaced: what is open, selected or focused elsewhere stays so.
  const replace = (id, html) => {
    if (shown[id] === html) return;
    const element = byId(id), focused = document.activeElement?.id;
    const open = new Map([...element.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    element.innerHTML = html;
    shown[id] = html;
    for (const [name, was] of open) if (byId(name)) byId(name).open = was;
    if (focused && document.activeElement === document.body) byId(focused)?.focus();
  };

  const take = (state) => {
    for (const [id, html] of Object.entries(state.page.parts)) replace(id, html);
    title = state.page.title;
    document.title = title;
    if (byId("icon").href !== state.page.icon) byId("icon").href = state.page.icon;
    age = state.age_seconds === null ? NaN : state.age_seconds;
    told = performance.now();
    lostAt = null;
    byId("at").textContent = state.page.at;
  };

  const tick = () => {
    const old = Number.isNaN(age) ? null : since(age * 1000 + performance.now() - told);
    byId("age").textContent = old === null ? "Not seen yet" : `Seen ${old} ago`;
    const lost = byId("lost");
    document.documentElement.classList.toggle("lost", lostAt !== null);
    lost.hidden = lostAt === null;
    if (lostAt === null) { lost.replaceChildren(); return; }
    if (!lost.firstChild) lost.append("The server does not answer: what you see is stale. ", document.createElement("span"));
    lost.lastChild.setAttribute("aria-hidden", "true");
    lost.lastChild.textContent = `Lost ${since(performance.now() - lostAt)} ago` +
      (old === null ? "." : `; the values are ${old} old.`);
    document.title = `(stale) ${title}`;
  };

  const ask = async () => {
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch("state.json?page", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) throw new Error(answer.status);
      take(await answer.json());
    } catch {
      lostAt ??= performance.now();
    }
    asking = false;
    tick();
  };

  const copied = (button, text) => {
    button.textContent = text;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const code = byId(button.dataset.copy);
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      copied(button, "Copied");
    } catch {
      copied(button, document.execCommand("copy") ? "Copied" : "Selected");
    }
  });

  document.addEventListener("visibilitychange", ask);
  setInterval(ask, PERIOD);
  setInterval(tick, 1000);
  tick();
})();
