// A chart of known costs by day. It is loaded when costs are looked at.

import { usdText, type CostSum } from "@holdfast/proto/view";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
// oxlint-disable-next-line import/no-unassigned-import -- styles have no name.
import "uplot/dist/uPlot.min.css";
import { MICRO } from "../../parts/text.ts";

const HEIGHT = 180;
const DAY_S = 86_400;

export default function CostChart({ days }: { readonly days: readonly CostSum[] }) {
  const box = useRef<HTMLDivElement>(null);
  const data = JSON.stringify(daily(days));
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let plot: uPlot | undefined;
    const draw = (): void => {
      plot?.destroy();
      plot = new uPlot(optionsFor(element), JSON.parse(data) as [number[], number[]], element);
    };
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const size = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    return () => {
      dark.removeEventListener("change", draw);
      size.disconnect();
      plot?.destroy();
    };
  }, [data]);
  return <div ref={box} aria-hidden className="overflow-hidden text-accent" style={{ height: HEIGHT }} />;
}

/** Every day from the first to the last, also those without a call. */
function daily(days: readonly CostSum[]): readonly [number[], number[]] {
  const known = new Map(days.map(({ name, cost }) => [Date.parse(name) / 1_000, cost.costMicroUsd / MICRO]));
  const all = [...known.keys()];
  const first = Math.min(...all);
  const count = Math.min(400, Math.round((Math.max(...all) - first) / DAY_S) + 1);
  const times = Array.from({ length: count }, (_, at) => first + at * DAY_S);
  return [times, times.map((time) => known.get(time) ?? 0)];
}

function optionsFor(element: HTMLElement): uPlot.Options {
  const style = getComputedStyle(element);
  const [accent, soft, line] = [style.color, colourOf("text-soft"), colourOf("text-line")];
  const font = `12px ${style.fontFamily}`;
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    tzDate: (time) => uPlot.tzDate(new Date(time * 1_000), "UTC"),
    legend: { show: false },
    cursor: { show: false },
    // Half a day beside the first and the last bar.
    scales: { x: { range: (_, from, to) => [from - DAY_S / 2, to + DAY_S / 2] }, y: { range: [0, null] } },
    axes: [
      { ...axis, incrs: [1, 2, 7, 14, 28, 56].map((each) => each * DAY_S), values: "{MMM} {D}" },
      { ...axis, size: 64, values: (_, splits) => splits.map((usd) => usdText(usd * MICRO)) },
    ],
    series: [
      {},
      {
        fill: accent,
        stroke: accent,
        paths: uPlot.paths.bars!({ size: [0.7, 60] }),
        points: { show: false },
      },
    ],
  };
}

/** The colour of a class, as it is now in light or dark. */
function colourOf(name: string): string {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.className = name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
