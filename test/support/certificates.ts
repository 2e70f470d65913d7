/** Certificates for tests, made with openssl: an authority, and certificates that it signs. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface CertificatePair {
  readonly certificate: string
  readonly key: string
}

export interface TestAuthority {
  /** The folder of all files; other users can read it. */
  readonly dir: string
  /** The certificate of the authority. */
  readonly ca: string
  /** Signs a certificate for localhost and 127.0.0.1, unless `host` names another one. Negative days: it has expired. */
  issue(name: string, options?: { readonly days?: number; readonly host?: string }): CertificatePair
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
  openssl('req', '-x509', ...NEW_KEY, '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', ca, '-days', '30')
  return {
    dir,
    ca,
    issue(name, { days = 20, host } = {}) {
      const names = host === undefined ? 'DNS:localhost,IP:127.0.0.1' : `DNS:${host}`
      const [key, request, certificate] = [`${name}.key`, `${name}.csr`, `${name}.pem`]
      openssl(
        ...['req', ...NEW_KEY, '-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`],
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

/** Repeats the check until it passes. The time-out of the test bounds it. */
export async function eventually(check: () => Promise<unknown>): Promise<void> {
  for (;;) {
    const error = await check().then(
      () => null,
      (reason: unknown) => reason,
    )
    if (error === null) return
    await sleep(50)
  }
}
