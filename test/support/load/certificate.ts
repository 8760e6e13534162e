import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Makes a key and a certificate that it signed itself, of localhost and 127.0.0.1. Resolves with the paths of the two files. */
export async function selfSigned(
  directory: string,
): Promise<{ readonly key: string; readonly certificate: string }> {
  const key = join(directory, 'key.pem');
  const certificate = join(directory, 'certificate.pem');
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  await promisify(execFile)('openssl', [...made, '-addext', names, '-keyout', key, '-out', certificate]);
  return { key, certificate };
}
