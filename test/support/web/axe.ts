import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** Loads axe into a page, whose tab must not obey its policy of content (`bypassCSP`). */
export async function addAxe(page: Page): Promise<void> {
  await page.addScriptTag({ content: await readFile(AXE, 'utf8') });
}

/** The faults of a page with axe that axe calls serious or critical, of every rule or of those named. */
export async function faultsOf(page: Page, only?: readonly string[]): Promise<string[]> {
  const options = { resultTypes: ['violations'], ...(only && { runOnly: only }) };
  const { violations } = await page.evaluate<{ violations: readonly Violation[] }>(
    `axe.run(document, ${JSON.stringify(options)})`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
}
