/** Certificates of a process: checked at the start, replaced when their files change, and exported with their expiry. */
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { systemClock } from './clock.ts'
import { ConfigError, type Env, rejectVariable } from './config-error.ts'

/** A file, and the variable that names it in errors. */
interface NamedFile {
  readonly variable: string
  readonly path: string
}

/** PEM files. `ca` verifies the other side; `certificate` with its chain, and `key`, identify this one. */
export interface TlsFiles {
  readonly ca: NamedFile | null
  readonly identity: { readonly certificate: NamedFile; readonly key: NamedFile } | null
}

/** In the form of the options of node:tls. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface TlsSource {
  current(): TlsMaterial
  /** Called with each replacement. Returns a function that ends the calls. */
  onChange(listener: (material: TlsMaterial) => void): () => void
}

interface Loaded {
  readonly material: TlsMaterial
  /** Earliest expiry of each role, Unix time in seconds. */
  readonly expiries: ReadonlyMap<string, number>
}

/** Files that are written one after the other are replaced once both are there: a pair that does not fit is read again. */
const CHECK_MS = 1_000
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

interface Report {
  info(details: object, message: string): void
  error(details: object, message: string): void
}

let reportTo: Report = { info() {}, error() {} }
const sources = new Map<string, { readonly source: TlsSource; readonly expiries: () => Loaded['expiries'] }>()

/** Replacements and failures are logged there. */
export function reportCertificates(logger: Report): void {
  reportTo = logger
}

/** Earliest expiry by role, Unix time in seconds, of every certificate that the process uses. */
export function certificateExpiries(): ReadonlyMap<string, number> {
  const earliest = new Map<string, number>()
  for (const { expiries } of sources.values())
    for (const [role, at] of expiries()) earliest.set(role, Math.min(at, earliest.get(role) ?? at))
  return earliest
}

export function textOfFile({ variable, path }: NamedFile): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable(variable, `is ${JSON.stringify(path)}, which cannot be read: ${code}`)
  }
}

/** Expiry of each certificate of the file, Unix time in seconds. */
function expiriesIn({ variable, path }: NamedFile, text: string): readonly number[] {
  const pems = text.match(CERTIFICATE) ?? []
  try {
    if (pems.length > 0) return pems.map((pem) => new X509Certificate(pem).validToDate.getTime() / 1000)
  } catch {
    // Errors of OpenSSL name routines, and no file.
  }
  return rejectVariable(variable, `is ${JSON.stringify(path)}, which has no valid certificate: expected PEM`)
}

function checkExpiry({ variable, path }: NamedFile, expiry: number): void {
  if (expiry * 1000 > systemClock.now()) return
  const at = new Date(expiry * 1000).toISOString()
  rejectVariable(
    variable,
    `is ${JSON.stringify(path)}, whose certificate expired at ${at}: expected a valid one`,
  )
}

const earliest = (expiries: readonly number[]): number => Math.min(...expiries)

function load(role: string, { ca, identity }: TlsFiles): Loaded {
  const expiries = new Map<string, number>()
  const material: { ca?: string; cert?: string; key?: string } = {}
  if (ca !== null) {
    material.ca = textOfFile(ca)
    const found = expiriesIn(ca, material.ca)
    // While authorities change, the bundle may contain one that has already expired.
    checkExpiry(ca, Math.max(...found))
    expiries.set(identity === null ? role : `${role}_ca`, earliest(found))
  }
  if (identity !== null) {
    const { certificate, key } = identity
    material.cert = textOfFile(certificate)
    material.key = textOfFile(key)
    const found = earliest(expiriesIn(certificate, material.cert))
    checkExpiry(certificate, found)
    expiries.set(ca === null ? role : `${role}_client`, found)
    checkPair(key, material)
  }
  return { material, expiries }
}

function checkPair({ variable, path }: NamedFile, material: TlsMaterial): void {
  try {
    createSecureContext({ cert: material.cert as string, key: material.key as string })
  } catch {
    rejectVariable(variable, `is ${JSON.stringify(path)}, which is not the key of the certificate`)
  }
}

const pathsOf = ({ ca, identity }: TlsFiles): readonly string[] =>
  [ca, identity?.certificate, identity?.key].flatMap((file) => (file ? [file.path] : []))

/** Differs after each write, also if the file was replaced by a file or a link of the same size. */
function versionOf(path: string): string {
  const { ino, size, mtimeMs, ctimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return [ino, size, mtimeMs, ctimeMs].join()
}

/** Logs the expiry of each role in use once. `reported`: roles with such a line. */
function reportExpired(expiries: Loaded['expiries'], reported: Set<string>): void {
  for (const [role, at] of expiries) {
    if (reported.has(role) || at * 1000 > systemClock.now()) continue
    reported.add(role)
    const expired_at = new Date(at * 1000).toISOString()
    reportTo.error({ role, expired_at }, 'certificate has expired; replace its file')
  }
}

function watch(role: string, files: TlsFiles, first: Loaded, versions: string) {
  let loaded = first
  let seen = versions
  const listeners = new Set<(material: TlsMaterial) => void>()
  const expired = new Set<string>()
  const check = (): void => {
    reportExpired(loaded.expiries, expired)
    const found = versionsOf(files)
    if (found === seen) return
    seen = found
    try {
      loaded = load(role, files)
      expired.clear()
      for (const listener of listeners) listener(loaded.material)
      reportTo.info({ role, expiries: Object.fromEntries(loaded.expiries) }, 'certificate replaced')
    } catch (error) {
      const reason = error instanceof ConfigError ? error.message : 'unknown'
      reportTo.error(
        { role, reason },
        'certificate files are invalid; the certificate before them stays in use',
      )
    }
  }
  setInterval(check, CHECK_MS).unref()
  const source: TlsSource = {
    current: () => loaded.material,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return { source, expiries: () => loaded.expiries }
}

const versionsOf = (files: TlsFiles): string => pathsOf(files).map(versionOf).join()

/**
 * Certificates from files for the process's life; roles `<role>_ca` and `<role>_client` with authority and identity.
 * Throws a ConfigError if a file is unusable or expired.
 */
export function openCertificates(role: string, files: TlsFiles): TlsSource {
  const name = JSON.stringify([role, ...pathsOf(files)])
  const known = sources.get(name)
  if (known !== undefined) return known.source
  // Read first: a change between both reads is then seen as one.
  const versions = versionsOf(files)
  const watched = watch(role, files, load(role, files), versions)
  sources.set(name, watched)
  return watched.source
}

/** The options of connections: they read the current material whenever one is opened. */
export const clientTls = (source: TlsSource): TlsMaterial => ({
  get ca() {
    return source.current().ca as string
  },
  get cert() {
    return source.current().cert as string
  },
  get key() {
    return source.current().key as string
  },
})

/** Null if neither variable is set; a certificate needs its key. */
export function identityOf(env: Env, certificate: string, key: string): TlsFiles['identity'] {
  const paths = [env[certificate] || null, env[key] || null] as const
  if (paths[0] === null && paths[1] === null) return null
  if (paths[0] === null) return rejectVariable(certificate, `is not set although ${key} is: expected both`)
  if (paths[1] === null) return rejectVariable(key, `is not set although ${certificate} is: expected both`)
  return {
    certificate: { variable: certificate, path: paths[0] },
    key: { variable: key, path: paths[1] },
  }
}

/** `TLS_CERT_FILE` and `TLS_KEY_FILE`, of every HTTP server of the process; null for plain HTTP. */
export function serverTls(env: Env): TlsSource | null {
  const identity = identityOf(env, 'TLS_CERT_FILE', 'TLS_KEY_FILE')
  return identity === null ? null : openCertificates('server', { ca: null, identity })
}
