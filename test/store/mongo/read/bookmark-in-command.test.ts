import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bookmark } from '../../../../src/store/bookmark.ts';
import { Int32 } from '../../../../src/store/values/bson.ts';
import { commandKey } from '../../../../src/store/mongo/read/bookmark-in-command.ts';
import { documentWith, elementOf } from '../../../../src/store/values/bson-elements.ts';
import { BSON_TYPE } from '../../../../src/store/values/bson-types.ts';

/** 1, and what JavaScript cannot carry: a date beyond its years, and a document with a name twice. */
const ONE = [BSON_TYPE.int32, Uint8Array.of(1, 0, 0, 0)] as const;
const LATE = [BSON_TYPE.date, Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 127)] as const;
const TWICE = [
  BSON_TYPE.document,
  documentWith(elementOf(BSON_TYPE.null, 'a', new Uint8Array(0)), elementOf(...named('a', ONE))),
] as const;
type Typed = readonly [type: number, value: Uint8Array];

function named(name: string, [type, value]: Typed): [number, string, Uint8Array] {
  return [type, name, value];
}

function bookmarkOf(fields: Readonly<Record<string, Typed>>): Bookmark {
  const elements = Object.entries(fields).map(([name, value]) => elementOf(...named(name, value)));
  return documentWith(...elements) as Bookmark;
}

test('a refused key names the field whose value no command carries', () => {
  for (const lost of [LATE, TWICE])
    for (const [fields, name, advice] of [
      [{ ü: ONE, _id: lost }, 'id', /exactly\. .*\. Replace the value\.$/],
      [{ _id: lost }, 'id', /Replace the value\.$/],
      [{ ü: lost, _id: ONE }, 'ü', /Choose the order of another field, or replace the value\.$/],
      [{ ü: lost }, 'ü', /Choose the order of another field, or replace the value\.$/],
    ] as const)
      assert.throws(
        () => commandKey(bookmarkOf(fields)),
        (error: Error) =>
          error.message.startsWith(`No MongoDB command can carry the ${name} of the row`) &&
          advice.test(error.message),
      );
  assert.deepEqual(commandKey(bookmarkOf({ ü: ONE, _id: ONE })), { ü: new Int32(1), _id: new Int32(1) });
});
