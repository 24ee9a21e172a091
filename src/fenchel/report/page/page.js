"use strict";

const numbers = JSON.parse(document.getElementById("numbers").textContent);
const still = matchMedia("(prefers-reduced-motion: reduce)");

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function written(value) {
  return Number(value.toPrecision(3)).toString().replace("-", "\u2212");
}

// The density under the pointer.
function mapReadout(map) {
  const stage = document.getElementById("map");
  const readout = document.getElementById("map-readout");
  const below = bytes(map.below);
  const [left, top, width, height] = map.area;

  stage.addEventListener("pointermove", (event) => {
    const box = stage.getBoundingClientRect();
    const u = ((event.clientX - box.left) / box.width - left) / width;
    const v = 1 - ((event.clientY - box.top) / box.height - top) / height;
    if (u < 0 || u >= 1 || v < 0 || v >= 1) {
      readout.textContent = "";
      return;
    }
    const cell = Math.floor(v * map.size) * map.size + Math.floor(u * map.size);
    const density = below[cell] === 255 ? 0 : Math.exp(map.highest - below[cell] / 10);
    const x = map.x[0] + u * (map.x[1] - map.x[0]);
    const y = map.y[0] + v * (map.y[1] - map.y[0]);
    const [xName, yName, name] = map.names;
    readout.textContent =
      `${xName} ${written(x)}, ${yName} ${written(y)}: ${name} ${written(density)}`;
  });
  stage.addEventListener("pointerleave", () => { readout.textContent = ""; });
}

// Particles that move from frame to frame, by hand or by themselves.
function player(moving) {
  const root = document.getElementById("player");
  const canvas = root.querySelector("canvas");
  const slider = document.getElementById("step");
  const button = document.getElementById("play");
  const shown = document.getElementById("step-name");
  const raw = bytes(moving.places);
  const places = new Uint16Array(raw.buffer);
  const last = moving.frames - 1;
  const duration = Math.min(1000, Math.max(90, 5000 / last)); // milliseconds a step
  let at = 0;
  let playing = 0;

  function place(frame, index) {
    return (places[(frame * moving.particles + Math.floor(index / 2)) * 2 + (index % 2)] / 65535) * 3 - 1;
  }

  function between(time, index) {
    const frame = Math.min(Math.floor(time), last);
    const next = Math.min(frame + 1, last);
    const part = time - frame;
    return (1 - part) * place(frame, index) + part * place(next, index);
  }

  function draw() {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    const [left, top, width, height] = moving.area;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.beginPath();
    const across = width * canvas.clientWidth;
    const down = height * canvas.clientHeight;
    pen.rect(left * canvas.clientWidth, top * canvas.clientHeight, across, down);
    pen.clip();
    pen.translate(left * canvas.clientWidth, top * canvas.clientHeight);
    pen.fillStyle = pen.strokeStyle =
      getComputedStyle(document.documentElement).getPropertyValue("--samples");
    trails(pen, across, down);
    const radius = Math.min(2, Math.max(1.3, across / 220));
    pen.globalAlpha = 0.85;
    pen.beginPath();
    for (let i = 0; i < moving.particles; i += 1) {
      const x = between(at, 2 * i) * across;
      const y = between(at, 2 * i + 1) * down;
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 2 * Math.PI);
    }
    pen.fill();
    canvas.dataset.frame = String(Math.round(at));
  }

  // From where each particle was a step ago.
  function trails(pen, across, down) {
    pen.globalAlpha = 0.3;
    pen.lineWidth = 1;
    pen.beginPath();
    const before = Math.max(at - 1, 0);
    for (let i = 0; i < moving.particles; i += 1) {
      pen.moveTo(between(before, 2 * i) * across, between(before, 2 * i + 1) * down);
      if (before < Math.floor(at)) {
        pen.lineTo(place(Math.floor(at), 2 * i) * across, place(Math.floor(at), 2 * i + 1) * down);
      }
      pen.lineTo(between(at, 2 * i) * across, between(at, 2 * i + 1) * down);
    }
    pen.stroke();
  }

  function show(time) {
    at = Math.min(Math.max(time, 0), last);
    const step = Math.round(at);
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", moving.names[step]);
    shown.textContent = moving.names[step];
    draw();
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    button.textContent = "Play";
    button.setAttribute("aria-label", "Play the steps");
    show(Math.round(at));
  }

  function play() {
    const begun = performance.now();
    const from = at >= last ? 0 : at;
    button.textContent = "Pause";
    button.setAttribute("aria-label", "Pause");
    function tick(now) {
      const time = from + (now - begun) / duration;
      // Those who want no motion see each step stand still.
      show(still.matches ? Math.floor(time) : time);
      if (time >= last) stop();
      else playing = requestAnimationFrame(tick);
    }
    playing = requestAnimationFrame(tick);
  }

  button.addEventListener("click", () => (playing ? stop() : play()));
  slider.addEventListener("input", () => {
    const step = Number(slider.value);
    if (playing) stop();
    show(step);
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  show(0);
}

function copyButton(button, code) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Some browsers keep the clipboard from files: then it is selected, to be copied by hand.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

if (numbers.map) mapReadout(numbers.map);
if (numbers.trajectories) player(numbers.trajectories);
const copy = document.getElementById("copy");
if (copy) copyButton(copy, document.getElementById("commands"));
