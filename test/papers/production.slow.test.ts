import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { documentText, ROOT } from '../support/documents.ts';

const PAGE = 'docs/production.md';

/** A file in docs/ops, linked in the paragraph before the block that shows it. */
const SHOWN = /(\[(ops\/[^\]]+)\]\(\2\)(?:(?!\n\n)[^])*\n\n```\w+\n)((?:(?!```)[^])*)/g;

test('each file in docs/ops that the page shows is shown as it is', () => {
  const page = documentText(PAGE);
  const fresh = page.replace(
    SHOWN,
    (_, before: string, file: string) => before + documentText(`docs/${file}`),
  );
  if (process.env.UPDATE_DOCUMENTS) writeFileSync(join(ROOT, PAGE), fresh);
  else assert.equal(page, fresh);
});
