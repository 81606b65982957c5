/** Changes of the policy in force, where the program allows them. */

import { setText } from "../dom";

/** A built-in policy, or the text of one. */
export type Policy = { policy: string } | { text: string };

/** Puts a policy in force, or makes the program read its own again, and shows its answer in `message`. */
export async function change(message: HTMLElement, meanwhile: string, policy: Policy | null): Promise<void> {
  setText(message, meanwhile);
  message.classList.remove("bad");
  try {
    const body =
      policy === null ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(policy) };
    const response = await fetch("/api/reload", { method: "POST", ...body });
    const answer = (await response.json()) as { message?: string; error?: string };
    message.classList.toggle("bad", !response.ok);
    setText(message, answer.message ?? answer.error ?? "no answer");
  } catch (error) {
    message.classList.add("bad");
    setText(message, String(error));
  }
}
