/**
 * Adds certificate and password files to a Postgres connection string, so that all pools and child processes use them.
 * Each new connection reads them again.
 */
import { clientTls, identityOf, openCertificates, type TlsMaterial, textOfFile } from './certificates.ts'
import { type Env, rejectVariable } from './config-error.ts'

/** Parameters of the connection string, and the variables that set them. The first three are those of libpq. */
const FILES = {
  sslrootcert: 'DATABASE_CA_FILE',
  sslcert: 'DATABASE_CERT_FILE',
  sslkey: 'DATABASE_KEY_FILE',
  password_file: 'DATABASE_PASSWORD_FILE',
} as const
const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

/** Modes that verify the server. As libpq's `verify-full`: the certificate must name the host. */
const VERIFYING = ['require', 'verify-ca', 'verify-full']
const MODES = ['disable', 'no-verify', ...VERIFYING]

/** Adds the files of the environment to the URL. Throws a ConfigError if they contradict it, or cannot be used. */
export function databaseAddress(env: Env, text: string): string {
  const url = new URL(text)
  const { searchParams } = url
  let isChanged = false
  for (const [parameter, variable] of Object.entries(FILES)) {
    const path = env[variable]
    if (!path) continue
    if (searchParams.has(parameter))
      rejectVariable(variable, `is set although DATABASE_URL has ${parameter}: expected one of both`)
    searchParams.set(parameter, path)
    isChanged = true
  }
  checkMode(url)
  tlsOf(url)
  if (searchParams.has('password_file')) checkPassword(url)
  return isChanged ? url.href : text
}

const hasFiles = ({ searchParams }: URL): boolean =>
  TLS_PARAMETERS.some((each) => each !== 'sslmode' && searchParams.has(each))

const hostOf = ({ hostname, searchParams }: URL): string =>
  searchParams.get('host') ?? decodeURIComponent(hostname).replace(/^\[(.+)\]$/, '$1')

function checkMode(url: URL): void {
  const mode = url.searchParams.get('sslmode')
  const reject = (problem: string): never => rejectVariable('DATABASE_URL', problem)
  if (url.searchParams.has('ssl'))
    reject(`has the parameter ssl: expected sslmode, one of ${MODES.join(', ')}`)
  if (mode !== null && !MODES.includes(mode))
    reject(`has sslmode=${mode}: expected one of ${MODES.join(', ')}`)
  if (hasFiles(url) && mode !== null && mode !== 'verify-full')
    reject(`has sslmode=${mode} although files of certificates are set: expected verify-full, or no sslmode`)
  const isTls = hasFiles(url) || (mode !== null && mode !== 'disable')
  if (isTls && hostOf(url).startsWith('/'))
    reject('asks for TLS on a Unix socket: expected a host, or no certificates and no sslmode')
}

function checkPassword(url: URL): void {
  if (url.password !== '')
    rejectVariable(
      'DATABASE_URL',
      `has a password although ${FILES.password_file} is set: expected one of both`,
    )
  passwordIn(url.searchParams.get('password_file') as string)
}

/** An error never repeats the password. */
export function passwordIn(path: string): string {
  const variable = FILES.password_file
  const password = textOfFile({ variable, path }).replace(/\r?\n$/, '')
  return password === '' ? rejectVariable(variable, `is ${JSON.stringify(path)}, which is empty`) : password
}

type ConnectionTls = TlsMaterial & { readonly rejectUnauthorized: boolean }

/** Null without TLS. */
function tlsOf(url: URL): ConnectionTls | null {
  const mode = url.searchParams.get('sslmode')
  if (mode === 'disable' || (mode === null && !hasFiles(url))) return null
  const verification = { rejectUnauthorized: mode !== 'no-verify' }
  if (!hasFiles(url)) return verification
  const paths = Object.fromEntries(
    Object.entries(FILES).map(([parameter, variable]) => [variable, url.searchParams.get(parameter) ?? '']),
  )
  const ca = paths[FILES.sslrootcert]
  const source = openCertificates('database', {
    ca: ca ? { variable: FILES.sslrootcert, path: ca } : null,
    identity: identityOf(paths, FILES.sslcert, FILES.sslkey),
  })
  return Object.assign(clientTls(source), verification)
}

/** Where and how a connection is opened, in the form of the options of pg. */
export interface ConnectionTarget {
  readonly connectionString?: string
  readonly host?: string
  readonly port?: number
  readonly user?: string
  readonly database?: string
  readonly ssl?: ConnectionTls
  /** Called for each connection. */
  readonly password?: () => string
}

/** Reads a connection string of `databaseAddress`. */
export function connectionTarget(text: string): ConnectionTarget {
  const url = new URL(text)
  const { searchParams } = url
  const isPlain = !searchParams.has('password_file') && !searchParams.has('sslmode') && !hasFiles(url)
  if (isPlain) return { connectionString: text }
  const tls = tlsOf(url)
  const passwordFile = searchParams.get('password_file')
  for (const parameter of [...TLS_PARAMETERS, 'password_file']) searchParams.delete(parameter)
  const ssl = tls === null ? {} : { ssl: tls }
  if (passwordFile === null) return { connectionString: url.href, ...ssl }
  // A connection string would set an empty password over the function. `host` and `port` are the parameters that this project uses.
  return {
    host: hostOf(url),
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    database: decodeURIComponent(url.pathname.slice(1)),
    password: () => passwordIn(passwordFile),
    ...ssl,
  }
}
