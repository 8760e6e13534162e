import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/settings/config.ts';
import { Faults } from '../../src/base/errors.ts';
import { SETTINGS, settingsHelp } from '../../src/settings/settings.ts';

test('every setting has a default', () => {
  const config = readConfig({});
  assert.equal(config.PORT, 3000);
  assert.equal(config.HOST, '127.0.0.1');
  assert.equal(config.MONGODB_URI, undefined);
  assert.equal(config.STALL_TIMEOUT, 300_000);
  assert.equal(config.STREAM_GRACE, 20_000);
});

test('settings are parsed by their own formats', () => {
  const config = readConfig({
    PORT: '0',
    MONGODB_MANAGE_INDEXES: 'false',
    STALL_TIMEOUT: '250 ms',
    STREAM_GRACE: '2h',
    MONGODB_URI: '',
  });
  assert.equal(config.PORT, 0);
  assert.equal(config.MONGODB_MANAGE_INDEXES, 'false');
  assert.equal(config.STALL_TIMEOUT, 250);
  assert.equal(config.STREAM_GRACE, 7_200_000);
  assert.equal(config.MONGODB_URI, undefined, 'an empty variable is not set');
});

test('all faults are reported at once, without passwords', () => {
  const wrong = {
    PORT: '70000',
    SAMPLE: 'yes',
    STALL_TIMEOUT: '5 minutes',
    MAX_LIMIT: 'many',
    MONGODB_URI: 'postgres://me:secret@host',
    MONGODB_MANAGE_INDEXES: 'perhaps',
    RATE_LIMIT: '100',
    STREAM_LIMIT: 'none',
    MAX_STREAMS: '0',
    TRUSTED_PROXIES: 'loopback,nginx',
    API_KEYS_FILE: '/nowhere/keys',
    REDIS_URL: 'http://:secret@localhost',
  };
  assert.throws(
    () => readConfig(wrong),
    (error) => {
      assert.ok(error instanceof Faults);
      const named = new Set(error.faults.map((fault) => fault.split(' ')[0]));
      assert.deepEqual([...named].sort(), Object.keys(wrong).sort());
      assert.doesNotMatch(error.message, /secret/);
      assert.match(
        error.message,
        /STALL_TIMEOUT must be a duration such as "20 s", "5 min" or "24 h"; got "5 minutes"/,
      );
      assert.match(error.message, /SAMPLE must be one of auto, on, off; got "yes"/);
      return true;
    },
  );
});

test('limits that are off are no limits', () => {
  const { RATE_LIMIT, STREAM_LIMIT } = readConfig({ RATE_LIMIT: 'off', STREAM_LIMIT: 'off' });
  assert.deepEqual({ RATE_LIMIT, STREAM_LIMIT }, { RATE_LIMIT: null, STREAM_LIMIT: Infinity });
});

test('the help names every setting', () => {
  for (const name of Object.keys(SETTINGS.properties))
    assert.match(settingsHelp(), new RegExp(`^ {2}${name} `, 'm'));
});
