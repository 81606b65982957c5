/**
 * The stories: their words, what their figures show, and what a reader can move. Every published or simulated value
 * comes from the data.
 */

import { ano } from "./texts/ano";
import { brouer } from "./texts/brouer";
import { kalyanaraman } from "./texts/kalyanaraman";
import { phanse } from "./texts/phanse";
import { sun } from "./texts/sun";
import type { Story } from "./model";

export const STORIES: readonly Story[] = [kalyanaraman, phanse, brouer, sun, ano];
