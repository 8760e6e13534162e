/** Settings whose whole value is a secret. */
const SECRET = /(ACCESS_KEY(_ID)?|SESSION_TOKEN)$/;
const URL_WITH_PASSWORD = /(_UR[IL]|_ENDPOINT)$/;
const HIDDEN = '***';

/** The value of a setting without what must not be shown. */
export function masked(name: string, value: string): string {
  if (SECRET.test(name)) return HIDDEN;
  if (!URL_WITH_PASSWORD.test(name)) return value;
  return value
    .replace(/^([a-z+]+:\/\/[^:/@?]*):.*@/, `$1:${HIDDEN}@`)
    .replace(/([?&][^=&]*(?:password|secret|token|authmechanismproperties)[^=&]*=)[^&]*/gi, `$1${HIDDEN}`);
}
