/** Where an issuer says what it has (OpenID Connect Discovery 1.0, 4). */
const PATH = '/.well-known/openid-configuration';

/** Whether nobody on the way can change what a URL answers: https, or a host on this machine. */
export function isProtected(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const isLoopback =
    hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}

/** The URL of the configuration of an issuer. */
export function configurationUrl(issuer: string): URL {
  return new URL(issuer.replace(/\/$/, '') + PATH);
}

/**
 * The URL of an issuer's keys, of its configuration. Throws an Error when the configuration is of another issuer, which
 * could then sign in its name, or names keys that somebody on the way could replace.
 */
export function keysUrlOf(configuration: unknown, issuer: string): string {
  const given: Readonly<Record<string, unknown>> =
    typeof configuration === 'object' && configuration !== null ? { ...configuration } : {};
  if (given.issuer !== issuer)
    throw new Error(`the configuration is of the issuer ${JSON.stringify(given.issuer)}, not of JWT_ISSUER`);
  const { jwks_uri: url } = given;
  if (typeof url !== 'string' || !isProtected(url))
    throw new Error('the jwks_uri of the configuration must be an https URL');
  return url;
}
