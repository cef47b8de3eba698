// Reads one frame: (clip) => {json, elements}. Called by observation.py; writes nothing into the page.
//
// `clip` is the part of this frame that the user can see, in the frame's own coordinates (null: its whole viewport).
// `elements` are the live nodes that ids stand for. `json` holds
//   lite    a flat list in reading order: text | 0 line break | 1 part break | 2 heading mark | {element} | {f: frame}
//   webrl   the kept nodes of the authors' format in document order: {tag, id, e, text, attrs}, 0 closes one
//   frames  [{e: index of the iframe element, clip}] for the {f} entries
//   scroll  [top, visible height, full height] of whatever scrolls the page, in CSS pixels
//   begun   false for a document that has just replaced another and of which nothing has come yet
(clip) => {
  const WIDTH = window.innerWidth, HEIGHT = window.innerHeight;
  const VIEW = clip ?? { left: 0, top: 0, right: WIDTH, bottom: HEIGHT };
  const MASK = "••••";
  const OPTIONS_SHOWN = 15;
  const listeners = window[Symbol.for("webrl_lite.listeners")];
  const elements = [], indexOf = new Map(), frames = [];

  const keep = (el) => {
    if (!indexOf.has(el)) indexOf.set(el, elements.push(el) - 1);
    return indexOf.get(el);
  };
  // The parser takes nearly any sign into a tag's name; only those of real tags may reach the text.
  const tagOf = (el) => el.localName.toLowerCase().replace(/[^\p{L}\p{N}:._-]/gu, "-");
  const attr = (el, name) => (el.getAttribute(name) ?? "").trim();
  const overlap = (a, b) => ({
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  });
  // One pixel is how "screen reader only" boxes are made, so a visible box has at least two.
  const meets = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) >= 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) >= 2;
  const within = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  const parentOf = (el) => el.assignedSlot ?? el.parentElement ?? el.getRootNode().host ?? null;
  const childrenOf = (el) => {
    if (el.shadowRoot) return el.shadowRoot.childNodes;
    const assigned = el.localName === "slot" ? el.assignedNodes() : [];
    return assigned.length ? assigned : el.childNodes;
  };

  // A value that must never leave the page: passwords, one-time codes, tokens.
  const SECRET_NAME = new RegExp("passw(or)?d|pwd|passphrase|csrf|xsrf|authenticity.?token|" +
    "(access|auth|api|session|secret|private).?(token|key)|^(token|secret|otp|pin|cvc|cvv)$", "i");
  const isSecret = (el) =>
    el.type === "password" || el.type === "hidden" || /-password|one-time-code|cc-csc/.test(attr(el, "autocomplete")) ||
    SECRET_NAME.test(attr(el, "name")) || SECRET_NAME.test(attr(el, "id"));
  const masked = (el, value) => (value && isSecret(el) ? MASK : value);

  // ------------------------------------------------------------------------------------------ mode `lite`: names

  const NO_TEXT = new Set(["script", "style", "template", "noscript", "head", "title", "meta", "link", "input",
    "select", "textarea", "option", "datalist", "object", "embed", "iframe"]);

  // All text under a node whether shown or not (labels and aria-labelledby targets may be hidden).
  function plainText(node) {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 || NO_TEXT.has(node.localName)) return "";
    if (node.localName === "img") return ` ${attr(node, "alt")} `;
    let text = "";
    for (const child of childrenOf(node)) text += plainText(child);
    return /^(span|b|i|em|strong|small|sup|sub|mark|u|abbr)$/.test(node.localName) ? text : ` ${text} `;
  }
  const squeeze = (text) => text.replace(/\s+/g, " ").trim();
  const labelText = (el) => squeeze([...(el.labels ?? [])].map(plainText).join(" "));

  function ariaName(el) {
    const root = el.getRootNode();
    const named = attr(el, "aria-labelledby").split(/\s+/).filter(Boolean)
      .map((id) => root.getElementById?.(id)).filter(Boolean).map(plainText).join(" ");
    return squeeze(named) || squeeze(attr(el, "aria-label"));
  }
  const HINTS = ["alt", "title", "placeholder", "aria-placeholder", "data-placeholder"];
  const hintName = (el) => squeeze(HINTS.map((name) => attr(el, name)).find(Boolean) ?? "");

  // aria-label wins, but visible words that it leaves out (a price, a title) are information and stay.
  function joinName(aria, content) {
    if (!aria || !content) return aria || content;
    const letters = content.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
    const said = aria.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ");
    return !letters || said.includes(letters) || letters.length < 2 ? aria : `${aria}: ${content}`;
  }

  // -------------------------------------------------------------------------------- mode `lite`: what is interactive

  const TYPED = new Set(["password", "date", "time", "datetime-local", "month", "week", "color", "range", "file"]);
  const ROLES = new Map(Object.entries({
    button: "button", link: "link", checkbox: "checkbox", radio: "radio", switch: "switch", tab: "tab",
    option: "option", menuitem: "menuitem", menuitemcheckbox: "checkbox", menuitemradio: "radio",
    treeitem: "treeitem", combobox: "input", textbox: "input", searchbox: "input", spinbutton: "input",
    slider: "slider",
  }));
  const NESTED = "a[href],button,input:not([type=hidden]),select,textarea,summary,[role=button],[role=link]," +
    "[role=tab],[role=checkbox],[role=radio],[role=switch],[contenteditable=''],[contenteditable=true]";

  const isEditable = (el) => el.isContentEditable && !el.parentElement?.isContentEditable;
  const heard = (el) => el !== document.body && el !== document.documentElement &&
    (listeners?.get(el)?.size > 0 || typeof el.onclick === "function" || typeof el.onmousedown === "function");

  // The kind of control that the element is by its tag or role, or "".
  function nativeKind(el, tag) {
    const role = ROLES.get(attr(el, "role").toLowerCase());
    if (tag === "input") {
      const type = el.type;
      if (type === "hidden") return "";
      if (type === "checkbox") return role === "switch" ? "switch" : "checkbox";
      if (["button", "submit", "reset", "image"].includes(type)) return role ?? "button";
      return TYPED.has(type) || type === "radio" ? type : "input";
    }
    if (tag === "select" || tag === "textarea") return tag;
    if (tag === "button") return role ?? "button";
    if ((tag === "a" || tag === "area") && el.hasAttribute("href")) return role ?? "link";
    if (tag === "summary" && el.parentElement?.localName === "details")
      return el.parentElement.querySelector(":scope > summary") === el ? "button" : "";
    if (tag === "details" && !el.querySelector(":scope > summary")) return "button";
    if ((tag === "video" || tag === "audio") && el.controls) return tag;
    if (isEditable(el)) return "textarea";
    return role ?? "";
  }

  const ALL_WAYS = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
  const visible = (el) => {
    if (!el.checkVisibility(ALL_WAYS)) return false;
    const box = el.getBoundingClientRect();
    return box.width >= 4 && box.height >= 4;
  };
  const shown = (el) => visible(el) && meets(el.getBoundingClientRect(), VIEW);

  // For elements that are no control by themselves: "" not interactive, "whole" a box with one meaning, "area" a large
  // box that gets an id of its own and whose content is rendered as usual.
  function clickable(el, tag, style, rect, ctx) {
    const bound = heard(el);
    const pointer = style.cursor === "pointer" && !ctx.pointer && !ctx.owner && tag !== "label";
    const tabbable = el.hasAttribute("tabindex") && el.tabIndex >= 0 && !ctx.owner &&
      !/auto|scroll/.test(style.overflowX + style.overflowY);
    if (!bound && !pointer && !tabbable) return "";
    const nested = el.querySelectorAll(NESTED).length;
    const long = el.textContent.length > 1200 || squeeze(plainText(el)).length > 300;
    if (nested === 0 && !long) return "whole";
    if (!bound && (tabbable || nested > 3 || long)) return "";
    // A listener on the box around most of the page is delegation, as on `document`.
    if (nested > 3 && (rect.right - rect.left) * (rect.bottom - rect.top) > 0.5 * WIDTH * HEIGHT) return "";
    return nested > 3 || long ? "area" : "whole";
  }

  // ---------------------------------------------------------------------------------- mode `lite`: state of controls

  function choices(options, chosen) {
    const texts = options.filter((option) => !option.hidden).map((option) =>
      squeeze(option.label || option.text || option.value || "") + (option.disabled ? " (disabled)" : ""));
    return {
      options: texts.slice(0, OPTIONS_SHOWN), more: Math.max(0, texts.length - OPTIONS_SHOWN),
      chosen: chosen.map((option) => squeeze(option.label || option.text)),
    };
  }

  function stateOf(el, kind) {
    const flag = (name) => attr(el, "aria-" + name);
    const states = [];
    const tag = el.localName;
    if (kind === "checkbox" || kind === "radio" || kind === "switch") {
      const native = tag === "input";
      const mixed = native ? el.indeterminate : flag("checked") === "mixed";
      states.push(mixed ? "mixed" : (native ? el.checked : flag("checked") === "true") ? "on" : "off");
    }
    if (flag("pressed") === "true") states.push("pressed");
    if (flag("selected") === "true") states.push("selected");
    if (flag("current") && flag("current") !== "false") states.push("current");
    const open = tag === "summary" ? el.parentElement.open : tag === "details" ? el.open
      : flag("expanded") ? flag("expanded") === "true" : null;
    const popup = flag("haspopup") && flag("haspopup") !== "false" ? "menu " : "";
    if (open !== null) states.push(popup + (open ? "open" : "closed"));
    else if (/^(true|menu)$/.test(flag("haspopup"))) states.push("menu");
    if (el.matches(":disabled") || flag("disabled") === "true") states.push("disabled");
    if (el.readOnly === true || flag("readonly") === "true") states.push("readonly");
    const unset = kind === "checkbox" ? !el.checked : el.value === "";
    if ((el.required === true && unset) || flag("required") === "true") states.push("required");
    return states;
  }

  function complaint(el) {
    const told = el.matches(":user-invalid") || el.matches(":focus");
    if (told && el.willValidate && !el.validity.valid) return squeeze(el.validationMessage);
    if (attr(el, "aria-invalid") !== "true") return "";
    const message = el.getRootNode().getElementById?.(attr(el, "aria-errormessage"));
    return (message && squeeze(plainText(message))) || "invalid";
  }

  // The record of one interactive element; `content` is the visible text inside it.
  function record(el, kind, content, control = el) {
    const tag = control.localName;
    const out = { e: keep(el), t: tagOf(control), k: kind, n: "", s: stateOf(control, kind) };
    let own = content;
    if (tag === "input") {
      own = labelText(control) || content;
      if (kind === "button") own = squeeze(control.value) || { submit: "Submit", reset: "Reset" }[control.type] || "";
      else if (kind === "file") out.v = [...control.files].map((file) => file.name).join(", ");
      else if (!["checkbox", "radio", "switch"].includes(kind)) out.v = masked(control, control.value);
      if (control.list) Object.assign(out, choices([...control.list.options], []));
    } else if (tag === "textarea") {
      own = labelText(control);
      out.v = masked(control, control.value);
    } else if (tag === "select") {
      own = labelText(control);
      if (control.multiple) out.s.unshift("multiple");
      Object.assign(out, choices([...control.options], [...control.selectedOptions]));
    } else if (kind === "textarea" || kind === "input" || kind === "slider") {
      out.v = attr(control, "aria-valuetext") || attr(control, "aria-valuenow") || control.innerText || "";
      own = "";
    } else if (tag === "button") own = joinName(labelText(control), content);
    const hint = hintName(control);
    out.n = joinName(ariaName(control), own) || hint;
    if (!out.n && (tag === "input" || tag === "select" || tag === "textarea")) out.n = attr(control, "name");
    if (!out.n && control instanceof SVGElement) out.n = attr(control, "fill");
    if (hint && hint !== out.n && !out.v && "v" in out) out.h = hint;
    const invalid = complaint(control);
    if (invalid) out.x = invalid;
    return out;
  }

  // --------------------------------------------------------------------------------------- mode `lite`: the walk

  const SKIPPED = new Set(["script", "style", "template", "noscript", "head", "title", "meta", "link", "option",
    "datalist", "source", "track", "param", "defs", "clipPath", "mask", "symbol", "metadata"]);
  const lite = [];
  const page = {
    text: (text) => { lite.push(text); },
    mark: (code) => { if (lite[lite.length - 1] !== code) lite.push(code); },
    item: (entry) => { lite.push(entry); },
  };
  // Text inside an interactive element goes into its name; what is interactive inside is listed after it.
  const CELL = "\u0000";
  const owner = () => {
    const box = { name: "", alt: "", spoken: "", nested: [] };
    return Object.assign(box, {
      text: (text) => { box.name += text; },
      mark: (code) => { box.name += code === 3 ? CELL : " "; },
      item: (entry) => { box.nested.push(entry); },
    });
  };
  // A modal dialog makes everything outside it inert.
  const modal = [...document.querySelectorAll("dialog:modal")].pop() ?? null;
  const aroundModal = new Set();
  for (let up = modal; up; up = parentOf(up)) aroundModal.add(up);

  const CLIPPED = /^(inset\((100|50)%|circle\(0|ellipse\(0|polygon\(0[a-z%]* 0[a-z%]*(, 0[a-z%]* 0[a-z%]*)*\))/;
  function hiddenByClip(style) {
    if (CLIPPED.test(style.clipPath)) return true;
    const rect = /^rect\((\S+?),? (\S+?),? (\S+?),? (\S+?)\)$/.exec(style.clip);
    if (!rect || !/absolute|fixed/.test(style.position)) return false;
    const [top, right, bottom, left] = rect.slice(1).map(parseFloat);
    return right - left < 2 || bottom - top < 2;
  }

  // Is a text node on the screen? The parent's box settles it mostly; else the text's own rectangles do.
  function textShown(node, rect, style, ctx) {
    if (style.overflow === "visible" && within(rect, ctx.flow) && meets(rect, rect)) return true;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (meets(box, ctx.flow)) return true;
    return false;
  }

  // The pieces of a long text that are on the screen, so that one huge node costs what it shows.
  function visiblePart(node, ctx) {
    const data = node.data, range = document.createRange();
    let from = -1, to = 0;
    for (let start = 0; start < data.length;) {
      let end = Math.min(data.length, start + 200);
      while (end < data.length && end < start + 400 && !/\s/.test(data[end])) end += 1;
      range.setStart(node, start);
      range.setEnd(node, end);
      const seen = [...range.getClientRects()].some((box) => meets(box, ctx.flow));
      if (seen && from < 0) from = start;
      if (seen) to = end;
      else if (from >= 0) break;
      start = end;
    }
    return from < 0 ? "" : data.slice(from, to);
  }

  function readText(node, rect, style, ctx, sink) {
    const data = node.data;
    if (ctx.quiet || !ctx.live || !data) return;
    if (!/\S/.test(data)) { if (!/^pre/.test(style.whiteSpace)) sink.text(" "); return; }
    if (style.visibility !== "visible") return;
    if (ctx.owner) {
      if (ctx.unseen) sink.spoken += ` ${data} `; else sink.text(data);
      return;
    }
    if (!textShown(node, rect, style, ctx)) return;
    const part = data.length > 600 ? visiblePart(node, ctx) : data;
    if (!/^(pre|break-spaces)/.test(style.whiteSpace)) { sink.text(part); return; }
    part.split("\n").forEach((line, number) => { if (number) sink.mark(0); sink.text(line); });
  }

  function readImage(el, style, rect, ctx, sink) {
    const alt = ariaName(el) || hintName(el);
    if (!alt || style.visibility !== "visible" || ctx.quiet || attr(el, "aria-hidden") === "true") return;
    if (ctx.owner) sink.alt += ` ${alt} `;
    else if (meets(rect, ctx.flow)) { sink.mark(1); sink.text(`${alt} (image)`); sink.mark(1); }
  }

  function readSvg(el, ctx, sink) {
    if (ctx.owner) {
      const title = [...el.children].find((child) => child.localName === "title");
      const alt = ariaName(el) || squeeze(title?.textContent ?? "");
      if (alt) sink.alt += ` ${alt} `;
    }
  }

  // Content of an interactive element, then the element, then what is interactive inside it.
  function readOwner(el, kind, ctx, sink, control = el) {
    const box = owner();
    const worded = kind !== "textarea" && !["input", "select"].includes(el.localName);
    if (worded) readChildren(el, { ...ctx, owner: true, row: false }, box);
    let name = box.name.split(CELL).map(squeeze).filter(Boolean).join(", ");
    const alt = squeeze(box.alt);
    if (alt && !name.toLowerCase().includes(alt.toLowerCase())) name = squeeze(`${alt} ${name}`);
    const bare = !name;
    const entry = record(el, kind, name || squeeze(box.spoken), control);
    const semantic = kind !== "clickable";
    let nested = box.nested;
    if (bare && semantic) {
      // All words lie in what is inside. Listeners there are this control's own words; controls keep theirs too.
      if (nested.length && !entry.n) entry.n = squeeze(plainText(el));
      nested = nested.filter((inner) => inner.k !== "clickable");
    }
    // A listener on a mere wrapper of controls adds nothing that the controls do not offer.
    if (semantic || !bare || !nested.length) sink.item(entry);
    for (const inner of nested) sink.item(inner);
  }

  function readLabel(el, ctx, sink) {
    const control = el.control;
    if (!control || control.type === "hidden") return false;
    if (shown(control)) {
      const quiet = ctx.quiet || !ariaName(control);
      readChildren(el, { ...ctx, quiet }, sink);
      return true;
    }
    if (!["checkbox", "radio", "file"].includes(control.type) || visible(control)) return false;
    readOwner(el, nativeKind(control, "input"), ctx, sink, control);
    return true;
  }

  const isRow = (style) => style.display === "table-row";
  const isCell = (style) => style.display === "table-cell";
  const BLOCK = /^(block|flex|grid|table$|list-item|flow-root|table-(row|header|footer)-group|table-caption)/;

  function readChildren(el, ctx, sink) {
    const open = el.localName !== "details" || el.open;
    const rect = el.getBoundingClientRect();
    const style = getComputedStyle(el);
    for (const node of childrenOf(el)) {
      if (node.nodeType === 3) { if (open) readText(node, rect, style, ctx, sink); }
      else if (node.nodeType === 1 && (open || node.localName === "summary")) read(node, ctx, sink, style);
    }
  }

  function read(el, ctx, sink, parentStyle) {
    const tag = el.localName;
    if (SKIPPED.has(tag)) return;
    let rect = el.getBoundingClientRect();
    const leaf = !el.firstElementChild && !el.shadowRoot && tag !== "slot";
    if (leaf && !ctx.owner && rect.width && rect.height && !meets(rect, VIEW)) return;
    const style = getComputedStyle(el);
    if (style.display === "none" || style.opacity === "0" || el.hasAttribute("inert")) return;
    if (!ctx.live && !aroundModal.has(el)) return;
    if (style.contentVisibility === "hidden" && !leaf) return;
    if (tag === "br") { sink.mark(ctx.row ? 1 : 0); return; }
    if (tag === "hr") { sink.mark(0); return; }

    const root = el === document.body || el === document.documentElement;
    const base = style.position === "fixed" ? VIEW : style.position === "absolute" ? ctx.abs : ctx.flow;
    const open = root || style.overflow === "visible" || /^(inline|contents)$/.test(style.display);
    const flow = open ? base : overlap(base, rect);
    const placed = style.position !== "static" || style.transform !== "none";
    const cutOut = hiddenByClip(style);
    const clipped = cutOut || (flow !== base && !meets(flow, flow));
    const inner = {
      ...ctx, flow, abs: placed ? flow : ctx.abs, live: ctx.live || el === modal, pointer: style.cursor === "pointer",
      unseen: ctx.unseen || (clipped && (cutOut || ctx.owner)),
    };
    // Names may come from "screen reader only" text, so inside an element clipped text is read, but kept apart.
    if (cutOut && !ctx.owner) return;

    const native = nativeKind(el, tag);
    if (native) rect = boxOf(el, rect);
    const onScreen = style.visibility === "visible" && meets(rect, flow) && !inner.unseen;
    if (native || tag === "iframe" || tag === "frame") {
      if (!onScreen) { if (native && leaf) return; }
      else if (!native) { if (!ctx.owner) readFrame(el, rect, base, sink); return; }
    }
    const kind = !onScreen || (root && native !== "textarea") ? "" : native || clickable(el, tag, style, rect, ctx);
    const row = isRow(style), cell = isCell(style);
    const flexRow = /flex/.test(parentStyle?.display ?? "") && !/column/.test(parentStyle.flexDirection);
    const short = flexRow && rect.height <= 48;
    const block = !row && !cell && BLOCK.test(style.display) && !short;
    const inline = short || /^inline-/.test(style.display);
    const brk = ctx.row ? 1 : 0;
    if (row) { sink.mark(0); inner.row = rect.height <= 240 && !el.querySelector("table"); }
    else if (cell) sink.mark(ctx.owner ? 3 : 1);
    else if (block) sink.mark(brk);
    else if (inline) sink.mark(1);
    const before = lite.length;
    if (!ctx.owner && (/^h[1-6]$/.test(tag) || attr(el, "role") === "heading") && onScreen) sink.mark(2);

    if (kind === "whole") readOwner(el, "clickable", inner, sink);
    else if (kind === "area") {
      const title = el.querySelector("h1,h2,h3,h4,h5,h6,[role=heading]");
      sink.item(record(el, "clickable", squeeze(plainText(title ?? el)).slice(0, 60)));
      sink.mark(brk);
      readChildren(el, inner, sink);
    } else if (kind) readOwner(el, kind, inner, sink);
    else if (tag === "img") readImage(el, style, rect, inner, sink);
    else if (tag === "label" && readLabel(el, inner, sink)) { /* its control speaks for it */ }
    else {
      if (tag === "svg") readSvg(el, inner, sink);
      const spoken = leaf && onScreen && !el.textContent.trim() ? ariaName(el) || attr(el, "title") : "";
      if (spoken && !ctx.quiet) sink.text(` ${spoken} `);
      else if ((tag === "progress" || tag === "meter") && onScreen) sink.text(` ${el.value} of ${el.max} `);
      else readChildren(el, inner, sink);
    }

    if (cell && ctx.row && lite.length === before && sink === page && meets(rect, ctx.flow)) sink.text("-");
    if (row) sink.mark(0);
    else if (cell) sink.mark(ctx.owner ? 3 : 1);
    else if (block) sink.mark(brk);
    else if (inline) sink.mark(1);
  }

  // A link around a floating image, or one with `display: contents`, has no box of its own: what it holds is clicked.
  function boxOf(el, rect) {
    if (meets(rect, rect)) return rect;
    const boxes = [...el.children].map((child) => boxOf(child, child.getBoundingClientRect()));
    const range = document.createRange();
    range.selectNodeContents(el);
    return [...boxes, range.getBoundingClientRect()].find((box) => meets(box, box)) ?? rect;
  }

  function readFrame(el, rect, base, sink) {
    const style = getComputedStyle(el);
    const left = rect.left + el.clientLeft + parseFloat(style.paddingLeft);
    const top = rect.top + el.clientTop + parseFloat(style.paddingTop);
    const seen = overlap(base, rect);
    const inside = { left: seen.left - left, top: seen.top - top, right: seen.right - left, bottom: seen.bottom - top };
    sink.mark(0);
    sink.item({ f: frames.push({ e: keep(el), clip: inside }) - 1 });
    sink.mark(0);
  }

  // --------------------------------------------------------------------------------------------- mode `webrl`

  const KEPT = ["title", "value", "type", "placeholder", "selected", "data-value", "data-text", "data-testid",
    "data-label", "data-bbox", "data-status"];
  const CLICK_TAGS = new Set(
    ["input", "textarea", "select", "button", "a", "iframe", "video", "object", "embed", "details"]);
  const CLICK_ROLES = new Set(
    ["button", "tab", "link", "checkbox", "menuitem", "menuitemcheckbox", "menuitemradio", "radio"]);

  function jsaction(el) {
    return (el.getAttribute("jsaction") ?? "").split(";").some((rule) => {
      const parts = rule.trim().split(":");
      if (parts.length > 2 || !el.hasAttribute("jsaction")) return false;
      const [namespace, action = "_"] = parts[parts.length - 1].trim().split(".");
      return (parts.length === 1 || parts[0] === "click") && namespace !== "none" && action !== "_";
    });
  }

  // The authors' test of "may be clickable", without their screen test.
  function possible(el) {
    const tag = tagOf(el);
    if (CLICK_TAGS.has(tag) || el.onclick != null) return true;
    if (CLICK_ROLES.has((el.getAttribute("role") ?? "").toLowerCase())) return true;
    if (["", "contenteditable", "true"].includes(el.getAttribute("contentEditable")?.toLowerCase())) return true;
    if ((el.getAttribute("class") ?? "").toLowerCase().includes("button")) return true;
    if (parseInt(el.getAttribute("tabindex") || "-1") >= 0 || jsaction(el)) return true;
    if (tag === "label" && el.control != null && !el.control.disabled) return true;
    const map = tag === "img" && el.getAttribute("usemap");
    if (map && document.getElementsByName(map.replace(/^#/, "")).length) return true;
    const cursor = getComputedStyle(el).cursor;
    return cursor === "pointer" || (tag === "img" && ["zoom-in", "zoom-out"].includes(el.style.cursor));
  }

  // Summed area of the element's boxes whose centre it owns on the screen.
  function ownedArea(el, boxes) {
    let area = 0;
    for (const box of boxes) {
      const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      if (!at || !el.contains(at)) continue;
      const width = Math.min(WIDTH, box.right) - Math.max(0, box.left);
      area += width * (Math.min(HEIGHT, box.bottom) - Math.max(0, box.top));
    }
    return area;
  }

  // Ids 0..n in document order for the innermost clickable elements.
  function webrlIds() {
    const found = [], outer = new Set(), ids = new Map();
    for (const el of document.querySelectorAll("*")) {
      const boxes = [...el.getClientRects()].filter((box) => {
        const x = box.left + box.width / 2, y = box.top + box.height / 2;
        return x > -1 && y > -1 && x < WIDTH + 1 && y < HEIGHT + 1;
      });
      if (!boxes.length || !possible(el) || ownedArea(el, boxes) < 1) continue;
      found.push(el);
      for (let up = el.parentElement; up && !outer.has(up); up = up.parentElement) outer.add(up);
    }
    for (const el of found) {
      if (outer.has(el)) continue;
      const box = el.getClientRects()[0];
      const width = Math.min(WIDTH, box.right) - Math.max(0, box.left);
      const height = Math.min(HEIGHT, box.bottom) - Math.max(0, box.top);
      if (width > 0 || height > 0) ids.set(el, ids.size);
    }
    return ids;
  }

  function webrlAttrs(el, tag, bbox) {
    const special = { "data-bbox": bbox };
    if (el.hasChildNodes()) {
      special["data-text"] = [...el.childNodes].filter((node) => node.nodeType === 3)
        .map((node) => node.data.trim().replace(/\s{2,}/g, " ")).filter(Boolean).join(",");
    }
    if (tag === "select") {
      special["data-value"] = el.value;
      special["data-text"] = el.options[el.selectedIndex]?.text ?? "";
    }
    if (tag === "input" || tag === "textarea") special["data-value"] = masked(el, el.value);
    if (tag === "input" && el.getAttribute("type") === "checkbox")
      special["data-status"] = el.checked ? "checked" : "not-checked";
    const owner = tag === "option" ? el.closest("select") : null;
    if (owner && owner.options[owner.selectedIndex] === el) special["data-status"] = "selected";
    const out = [], bare = !el.hasAttributes();
    for (const name of KEPT) {
      let value = special[name] ?? (bare ? null : el.getAttribute(name));
      if (name === "value" && tag === "input") value = masked(el, value);
      if (value == null || !value.trim() || (name === "type" && value === "hidden")) continue;
      out.push([name, value]);
    }
    return out;
  }

  // Pushes the kept nodes of a subtree to `out` in document order, each closed by a 0 (a node that is not kept is
  // flattened away: its children stay). Returns the authors' "something clickable or worded in it", which counts for
  // nodes that are not shown too.
  function webrlNode(el, ids, keptParent, out) {
    const tag = tagOf(el);
    const box = el.getClientRects()[0];
    let bbox = null, onScreen = false;
    if (box) {
      const left = Math.round(box.left), top = Math.round(box.top);
      const width = Math.round(box.right) - left, height = Math.round(box.bottom) - top;
      bbox = `${left},${top},${width},${height}`;
      onScreen = left + width >= 0 && left <= WIDTH && top + height >= 0 && top <= HEIGHT;
    }
    onScreen &&= el.getAttribute("aria-hidden") !== "true";
    const id = ids.get(el);
    const candidate = onScreen || id !== undefined || (keptParent && tag === "option");
    const attrs = webrlAttrs(el, tag, bbox);
    let text = "", first = true, have = 0;
    const at = out.push(null) - 1;
    for (const node of (tag === "template" ? el.content : el).childNodes) {
      if (node.nodeType === 3 && first) text += node.data;
      if (node.nodeType !== 1 || node.localName === "script" || node.localName === "style") continue;
      first = false;
      if (webrlNode(node, ids, candidate && tag === "select", out)) have += 1;
    }
    const worded = text.trim() !== "" || attrs.some(([name]) => name !== "data-bbox");
    if (candidate && (have > 1 || worded || (id !== undefined && onScreen))) {
      out[at] = { tag, text, attrs, ...(id !== undefined && { id, e: keep(el) }) };
      out.push(0);
    }
    return have > 0 || worded;
  }

  // ------------------------------------------------------------------------------------------------- the read

  function scrolling() {
    const doc = document.scrollingElement ?? document.documentElement;
    if (!doc) return [0, HEIGHT, HEIGHT];  // a script has just opened the document anew
    let box = doc;
    if (doc.scrollHeight <= HEIGHT) {
      // Applications often scroll a box in the middle instead of the document.
      for (let el = document.elementFromPoint(WIDTH / 2, HEIGHT / 2); el && el !== doc; el = parentOf(el)) {
        const large = el.clientHeight > HEIGHT / 2 && el.scrollHeight > el.clientHeight + 1;
        if (large && /auto|scroll/.test(getComputedStyle(el).overflowY)) {
          box = el;
          break;
        }
      }
    }
    const height = box === doc ? HEIGHT : box.clientHeight;
    return [Math.round(box.scrollTop), height, Math.max(height, box.scrollHeight)];
  }

  // A page nested thousands deep ends the recursion; what was read until then is kept.
  function attempt(work) {
    try {
      if (document.documentElement) work();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  // Some libraries give Array or String a toJSON of their own, which would change what is sent: set aside meanwhile.
  function toJson(data) {
    const changed = [Object, Array, String, Number, Boolean].map((type) => type.prototype)
      .map((proto) => [proto, Object.getOwnPropertyDescriptor(proto, "toJSON")]).filter(([, old]) => old);
    for (const [proto] of changed) delete proto.toJSON;
    try {
      return JSON.stringify(data);
    } finally {
      for (const [proto, old] of changed) Object.defineProperty(proto, "toJSON", old);
    }
  }

  // flow, abs: what clips content in the flow and absolutely placed content; pointer: the cursor is a hand already;
  // owner: inside an interactive element; unseen: clipped text, good for names only; quiet: text that is a control's
  // label; row: inside a table row, so no line breaks; live: not behind a modal dialog.
  const ctx = {
    flow: VIEW, abs: VIEW, pointer: false, owner: false, unseen: false, quiet: false, row: false, live: !modal,
  };
  const webrl = [];
  attempt(() => read(document.documentElement, ctx, page, null));
  if (!clip) attempt(() => webrlNode(document.documentElement, webrlIds(), false, webrl));
  const begun = document.readyState !== "loading" || lite.some((item) => typeof item !== "number");
  const seen = { lite, webrl: webrl.filter((entry) => entry !== null), frames, scroll: scrolling(), begun };
  return { json: toJson(seen), elements };
}
