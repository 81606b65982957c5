import type { Slider, Story } from "../model";

const discard: Slider = {
  setting: "discard_from",
  label: "Marked cells are refused from",
  unit: [1, "cells"],
  values: [9000, 10000, 10250, 10500, 11000, 12000, 14000, 16000, 18000],
  from: 18000,
};
const note =
  "A point of yours is one run of 10 s, since 48 connections at 150 Mbit/s are much work. Its slow start lowers the mean. Simulated values are means of five runs of 180 s.";

export const ano: Story = {
  key: "ano2002",
  title: "A guaranteed share for a few connections, on ATM",
  text: [
    "Differentiated services promise more to some traffic: Assured Forwarding (AF) gets a contracted rate and a share of what is left, the default class (DF) shares the rest. The paper builds this with ATM: eight paths with six TCP connections each share one 150 Mbit/s trunk; two paths have a contract.",
    "A switch marks cells beyond the contract and refuses marked cells when its memory is nearly full. The paper does not say of which memory its 90 % are taken. That is the assumption that decides its results here.",
    "The simulated values here are those of the documentation's reproduction page, with the digits that it prints: a run of this network takes minutes.",
  ],
  figures: [
    {
      id: "contract",
      title: "Throughput of a path by its contract",
      about:
        "The share formula of the paper expects throughput to fall with the contracted rate. It falls little where marked cells are refused late, and as published where they are refused early: move the threshold to 10 250 to 10 500 cells.",
      across: { param: "scr0_af2_mbps", axis: { title: "Contract of the path", unit: [1, "Mbit/s"] } },
      up: { title: "Six connections together", unit: [1, "Mbit/s"] },
      series: [{ label: "path with the varied contract", tables: ["1"], figure: "aggregate_throughput_mbps" }],
      table: "1",
      settings: { duration_s: 10 },
      sliders: [
        {
          setting: "scr0_af2_mbps",
          label: "Contract",
          unit: [1, "Mbit/s"],
          values: [2.12, 4, 5.3, 8, 10.6, 12, 14.84, 17, 18.72],
          from: 8,
        },
        discard,
      ],
      choices: [],
      also: [{ figure: "aggregate_of_af_1_mbps", label: "the other path with a contract", unit: [1, "Mbit/s"] }],
      note,
    },
    {
      id: "classes",
      title: "A connection with and without a contract",
      about:
        "With round trips of 80 ms a connection of AF gets a good twice the rate of one without. At 160 ms the windows are too small to fill the trunk, and the classes do not differ. For 80 ms the paper prints an estimate by its share formula, and says that the averages are close to it.",
      across: { param: "rtt_ms", axis: { title: "Round trip", unit: [1, "ms"] } },
      up: { title: "Goodput of a connection", unit: [1, "Mbit/s"] },
      series: [
        {
          label: "AF, with a contract",
          tables: ["fig-3"],
          where: { phb: "AF" },
          figure: "tcp_throughput_mbps",
          theory: "estimate_mbps",
        },
        {
          label: "DF, without",
          tables: ["fig-3"],
          where: { phb: "DF" },
          figure: "tcp_throughput_mbps",
          theory: "estimate_mbps",
        },
        { label: "AF, windows too small", tables: ["fig-5"], where: { phb: "AF" }, figure: "tcp_throughput_mbps" },
      ],
      table: "fig-3",
      settings: { duration_s: 10 },
      sliders: [
        {
          setting: "rtt_ms",
          label: "Round trip",
          unit: [1, "ms"],
          values: [20, 40, 60, 80, 100, 120, 160, 200],
          from: 120,
        },
        discard,
      ],
      choices: [
        {
          label: "Connection",
          options: [
            { label: "AF, with a contract", settings: { phb: "AF" }, series: [0] },
            { label: "DF, without", settings: { phb: "DF" }, series: [1] },
          ],
        },
      ],
      note,
    },
  ],
};
