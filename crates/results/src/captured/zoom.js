"use strict";
// Zoom and values for the plots of each direction. Without it the page shows the whole span.
document.querySelectorAll("section.direction").forEach((section) => {
  const all = JSON.parse(section.querySelector("script").textContent);
  const svgs = [...section.querySelectorAll("svg.plot")];
  const space = "http://www.w3.org/2000/svg";
  const inner = all.width - all.left - all.right;
  let from = all.from, to = all.to;

  const add = (parent, name, attributes, text) => {
    const element = parent.appendChild(document.createElementNS(space, name));
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const step = (raw) => {
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find((one) => raw <= one * power * 1.000001) * power;
  };
  const unit = (largest, base) => {
    const units = base === "s" ? [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]
      : [[1e9, "G" + base], [1e6, "M" + base], [1e3, "k" + base], [1, base]];
    return units.find((one) => largest >= one[0]) || units[units.length - 1];
  };
  const digits = (value) => String(Number(value.toPrecision(6)));
  const shown = (value, base) => {
    const [scale, name] = unit(Math.abs(value), base);
    return digits(value / scale) + " " + name;
  };
  // Index of the first point at or after a time. Points are time, least, largest.
  const after = (points, time) => {
    let low = 0, high = points.length / 3;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[3 * middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  };

  const draw = (plot, svg) => {
    const height = Number(svg.dataset.height), bottom = all.top + height;
    const x = (time) => all.left + inner * (time - from) / (to - from);
    const whole = from === all.from && to === all.to;
    let low = Infinity, high = -Infinity;
    const spans = plot.curves.map((curve) => {
      const points = curve.points;
      const first = Math.max(0, after(points, from) - 1), end = Math.min(points.length / 3, after(points, to) + 1);
      // Only data and acknowledgements set the scale of a magnified sequence: the window's edge is far above.
      const counts = whole || curve.name !== "receiver's window";
      for (let i = first; i < end; i++) {
        const time = points[3 * i];
        if (counts && time >= from && time <= to) {
          low = Math.min(low, points[3 * i + 1]);
          high = Math.max(high, points[3 * i + 2]);
        }
      }
      return [first, end];
    });
    if (!isFinite(low)) { low = 0; high = 1; }
    if (whole || plot.title !== "Sequence") low = 0;
    const margin = Math.max(high - low, 1) * 0.06;
    high += margin;
    if (low > 0) low -= margin;
    plot.y = (value) => bottom - height * (value - low) / (high - low);
    const y = (value) => Math.min(bottom, Math.max(all.top, plot.y(value))).toFixed(1);

    svg.querySelectorAll(":scope > path").forEach((path, number) => {
      const curve = plot.curves[number], points = curve.points, [first, end] = spans[number];
      let text = "";
      for (let i = first; i < end; i++) {
        const time = points[3 * i], least = points[3 * i + 1], most = points[3 * i + 2];
        const at = Math.min(all.width - all.right, Math.max(all.left, x(time))).toFixed(1);
        const inside = time >= from && time <= to;
        if (curve.shape === "bars") {
          if (inside) text += "M" + at + " " + y(least) + "V" + Math.min(y(most), y(least) - 1).toFixed(1);
        } else if (curve.shape === "marks") {
          if (inside) text += "M" + at + " " + y(least) + curve.mark;
        } else {
          text += (text === "" ? "M" + at + " " + y(least)
            : curve.shape === "steps" ? "H" + at + "V" + y(least) : "L" + at + " " + y(least));
          if (most !== least) text += "V" + y(most);
        }
      }
      path.setAttribute("d", text);
    });

    const axes = svg.querySelector(".axes");
    axes.replaceChildren();
    const [scale, name] = unit(high * plot.scale, plot.unit);
    section.querySelectorAll("figcaption .unit")[svgs.indexOf(svg)].textContent = name;
    const each = step((high - low) * plot.scale / scale / (height > 200 ? 7 : 4)) * scale / plot.scale;
    for (let tick = Math.ceil(low / each) * each; tick <= high; tick += each) {
      add(axes, "path", { class: "grid", d: "M" + all.left + " " + y(tick) + "H" + (all.width - all.right) });
      add(axes, "text", { x: all.left - 7, y: Number(y(tick)) + 4, "text-anchor": "end" },
        digits(tick * plot.scale / scale));
    }
    const [second, symbol] = unit((to - from) / 1e6, "s");
    const every = step((to - from) / 1e6 / second / 9) * second * 1e6;
    for (let tick = Math.ceil(from / every) * every; tick <= to; tick += every) {
      const at = x(tick).toFixed(1);
      add(axes, "path", { class: "frame", d: "M" + at + " " + bottom + "v4" });
      add(axes, "text", { x: at, y: bottom + 17, "text-anchor": "middle" },
        digits(tick / 1e6 / second) + " " + symbol);
    }
    add(axes, "path", { class: "frame", d: "M" + all.left + " " + bottom + "H" + (all.width - all.right) });

    const strip = svg.querySelector(".phases");
    strip.replaceChildren();
    plot.phases.forEach(([time, colour, phase], number) => {
      const end = number + 1 < plot.phases.length ? plot.phases[number + 1][0] : all.to;
      const left = Math.max(all.left, x(time)), right = Math.min(all.width - all.right, x(end));
      if (right < left) return;
      const rect = add(strip, "rect", { class: "phase" + colour, x: left.toFixed(1), y: bottom - 10,
        width: Math.max(0.5, right - left).toFixed(1), height: 10 });
      add(rect, "title", {}, phase);
    });
  };

  const values = document.createElement("p");
  values.className = "values";
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  const caption = section.querySelector(".caption");
  caption.after(buttons, values);
  const hint = "Drag over a plot to magnify, double-click for the whole.";
  values.textContent = hint;

  const zoom = (left, right) => {
    const least = 10;
    if (right - left < least) right = left + least;
    const span = Math.min(right - left, all.to - all.from);
    from = Math.max(all.from, Math.min(left, all.to - span));
    to = from + span;
    all.plots.forEach((plot, number) => draw(plot, svgs[number]));
  };
  const about = (factor) => {
    const middle = (from + to) / 2, half = (to - from) / 2 * factor;
    zoom(middle - half, middle + half);
  };
  const shift = (part) => zoom(from + (to - from) * part, to + (to - from) * part);
  [["Whole", () => zoom(all.from, all.to)], ["Magnify", () => about(0.5)], ["Reduce", () => about(2)],
    ["Earlier", () => shift(-0.5)], ["Later", () => shift(0.5)]].forEach(([text, action]) => {
    const button = buttons.appendChild(document.createElement("button"));
    button.textContent = text;
    button.type = "button";
    button.addEventListener("click", action);
  });

  const tell = (time) => {
    const parts = [(time / 1e6).toFixed(6) + " s"];
    all.plots.forEach((plot) => {
      plot.phases.forEach(([at, , phase]) => { if (at <= time) plot.phase = phase; });
      if (plot.phase) parts.push(plot.phase);
      plot.curves.forEach((curve) => {
        const i = after(curve.points, time + 1) - 1;
        if (i < 0) return;
        const near = Math.abs(curve.points[3 * i] - time) * inner / (to - from) < 5;
        if (curve.shape === "marks" && !near) return;
        const low = curve.points[3 * i + 1] * plot.scale, high = curve.points[3 * i + 2] * plot.scale;
        const text = low === high ? shown(high, plot.unit) : shown(low, plot.unit) + " to " + shown(high, plot.unit);
        parts.push(curve.name + " " + text);
      });
      plot.phase = undefined;
    });
    values.textContent = parts.join(" · ");
  };

  svgs.forEach((svg) => {
    const cursor = add(svg, "line", { class: "cursor", y1: all.top, y2: all.top + Number(svg.dataset.height) });
    const chosen = add(svg, "rect", { class: "chosen", y: all.top, height: svg.dataset.height, width: 0 });
    cursor.style.display = "none";
    svg.cursor_line = cursor;
    let began = null;
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width * all.width - all.left) / inner;
      return from + (to - from) * Math.min(1, Math.max(0, place));
    };
    const x = (time) => all.left + inner * (time - from) / (to - from);
    svg.addEventListener("pointermove", (event) => {
      const time = at(event);
      tell(time);
      svgs.forEach((other) => {
        other.cursor_line.style.display = "";
        other.cursor_line.setAttribute("x1", x(time));
        other.cursor_line.setAttribute("x2", x(time));
      });
      if (began !== null) {
        chosen.setAttribute("x", Math.min(x(began), x(time)));
        chosen.setAttribute("width", Math.abs(x(time) - x(began)));
      }
    });
    svg.addEventListener("pointerleave", () => {
      svgs.forEach((other) => { other.cursor_line.style.display = "none"; });
    });
    // A finger scrolls the page and the figure.
    svg.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType !== "touch") began = at(event);
    });
    svg.addEventListener("pointerup", (event) => {
      const end = at(event), begin = began;
      began = null;
      chosen.setAttribute("width", 0);
      if (begin !== null && Math.abs(x(end) - x(begin)) > 4) zoom(Math.min(begin, end), Math.max(begin, end));
    });
    svg.addEventListener("dblclick", () => zoom(all.from, all.to));
  });
});
