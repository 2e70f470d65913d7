/** TLS of the connections between hosts: both sides show a certificate of one authority, before they prove the keys of the roles. */
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, TLSSocket, type TlsOptions } from 'node:tls'
import { clientTls, identityOf, openCertificates, type TlsSource } from '../../../service/certificates.ts'
import { type Env, rejectVariable } from '../../../service/environment.ts'
import type { Refused } from './messages.ts'

const CA = 'ENGINE_TLS_CA_FILE'
const CERTIFICATE = 'ENGINE_TLS_CERT_FILE'
const KEY = 'ENGINE_TLS_KEY_FILE'

/** Both sides run this code, so no older version is needed. */
const VERSION = { minVersion: 'TLSv1.3' } as const

/** Null without the three files. `socket`: a Unix socket among the addresses of the variable, which can have no TLS. */
export function linkTls(env: Env, variable: string, socket: string | null): TlsSource | null {
  const identity = identityOf(env, CERTIFICATE, KEY)
  const ca = env[CA] || null
  if (identity === null && ca === null) return null
  if (ca === null) return rejectVariable(CA, `is not set although ${CERTIFICATE} is: expected both`)
  if (identity === null) return rejectVariable(CERTIFICATE, `is not set although ${CA} is: expected both`)
  if (socket !== null)
    rejectVariable(
      variable,
      `has the socket ${JSON.stringify(socket)} although ${CA} is set: expected host:port, or no certificates`,
    )
  return openCertificates('engine', { ca: { variable: CA, path: ca }, identity })
}

/** Options of one connection, with the present certificates of the files. */
export const clientOptions = (tls: TlsSource): ConnectionOptions => ({
  ...clientTls(tls),
  ...VERSION,
  rejectUnauthorized: true,
})

/** Options of a server that refuses clients without a certificate of the authority. */
export const serverOptions = (tls: TlsSource, handshakeMs: number): TlsOptions => ({
  ...tls.current(),
  ...VERSION,
  requestCert: true,
  rejectUnauthorized: true,
  handshakeTimeout: handshakeMs,
})

/** Lets new connections use replaced certificates. */
export const followLinkCertificates = (
  server: { setSecureContext(options: TlsOptions): void },
  tls: TlsSource,
): (() => void) => tls.onChange((material) => server.setSecureContext({ ...material, ...VERSION }))

const ONE_AUTHORITY = `certificates of the authority in ${CA} on both sides`

interface Problem {
  readonly codes: RegExp
  readonly received: string
  readonly expected: string
}

/** Codes of OpenSSL and of node:tls. */
const PROBLEMS: readonly Problem[] = [
  {
    codes: /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|BAD_RECORD_TYPE|INVALID_RECORD/,
    received: 'a connection without TLS',
    expected: `TLS with ${ONE_AUTHORITY}`,
  },
  {
    codes: /CERT_HAS_EXPIRED|CERTIFICATE_EXPIRED/,
    received: 'an expired certificate',
    expected: 'a valid one',
  },
  {
    codes: /CERTIFICATE_REQUIRED|PEER_DID_NOT_RETURN_A_CERTIFICATE/,
    received: 'no certificate of the client',
    expected: ONE_AUTHORITY,
  },
  {
    codes: /SELF_SIGNED|UNABLE_TO_|UNKNOWN_CA|CERT_SIGNATURE_FAILURE|CERTIFICATE_VERIFY_FAILED|DECRYPT_ERROR/,
    received: 'a certificate of another authority',
    expected: ONE_AUTHORITY,
  },
  {
    codes: /ALTNAME_INVALID/,
    received: 'a certificate of another host',
    expected: 'a certificate that names the host of ENGINE_URL',
  },
]

const refused = (received: string, expected: string): Refused => ({
  kind: 'refused',
  field: 'tls',
  received,
  expected,
})

/** Reason why a TLS connection failed; null for a failure of another kind. */
export function tlsRefusal(code = ''): Refused | null {
  const found = PROBLEMS.find(({ codes }) => codes.test(code))
  if (found !== undefined) return refused(found.received, found.expected)
  return /^ERR_(SSL|TLS)_/.test(code) ? refused(code, ONE_AUTHORITY) : null
}

/**
 * Reason why the server refused a client. If node:tls cannot verify a certificate, it ends the connection without an alert, and only the socket has the reason.
 */
export const clientRefusal = (error: NodeJS.ErrnoException, socket: TLSSocket): Refused =>
  // At run time `authorizationError` is the code of the verification, although its type is Error.
  tlsRefusal(`${socket.authorizationError ?? ''}`) ??
  tlsRefusal(error.code) ??
  refused('no TLS handshake', `TLS with ${ONE_AUTHORITY}`)

/** The engine sends its challenge at once to a client whose certificate it accepts. */
export const silentRefusal = (stream: Duplex): Refused | null =>
  stream instanceof TLSSocket && stream.authorized
    ? refused('the end of the connection after the TLS handshake', ONE_AUTHORITY)
    : null
