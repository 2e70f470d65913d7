/** Certificates for tests, made with openssl: an authority, and certificates that it signs. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from './patience.ts'

export interface CertificatePair {
  readonly certificate: string
  readonly key: string
}

export interface TestAuthority {
  /** The folder of all files; other users can read it. */
  readonly dir: string
  /** The certificate of the authority. */
  readonly ca: string
  /** Signs a certificate for localhost and 127.0.0.1. With negative days it has expired. */
  issue(name: string, options?: { readonly days?: number }): CertificatePair
  remove(): void
}

export const hasOpenssl = (): boolean => spawnSync('openssl', ['version']).error === undefined

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export function createAuthority(): TestAuthority {
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-tls-'))
  chmodSync(dir, 0o755)
  const file = (name: string): string => join(dir, name)
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe', cwd: dir })
  const ca = file('ca.pem')
  openssl(
    'req',
    '-x509',
    ...NEW_KEY,
    '-subj',
    '/CN=authority',
    '-keyout',
    'ca.key',
    '-out',
    ca,
    '-days',
    '30',
  )
  return {
    dir,
    ca,
    issue(name, { days = 20 } = {}) {
      const [key, request, certificate] = [`${name}.key`, `${name}.csr`, `${name}.pem`]
      openssl(
        ...[
          'req',
          ...NEW_KEY,
          '-subj',
          `/CN=${name}`,
          '-addext',
          'subjectAltName=DNS:localhost,IP:127.0.0.1',
        ],
        ...['-keyout', key, '-out', request],
      )
      openssl(
        ...['x509', '-req', '-in', request, '-CA', ca, '-CAkey', 'ca.key', '-CAcreateserial'],
        ...['-days', `${days}`, '-copy_extensions', 'copy', '-out', certificate],
      )
      return { certificate: file(certificate), key: file(key) }
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** Replaces a file as operators do: written beside it, then renamed. */
export function replaceFile(path: string, by: string): void {
  copyFileSync(by, `${path}.new`)
  renameSync(`${path}.new`, path)
}

/** Repeats the check until it passes. */
export const eventually = (check: () => Promise<unknown>): Promise<unknown> => {
  const run = () =>
    check().then(
      () => null,
      (error: unknown) => error,
    )
  return waitFor(run, (error) => error === null)
}
