/** Certificates of a cluster: each start makes an authority and one certificate per host, so none expires while a folder is kept. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import { makeFolder } from '../data-dir.ts'
import { APP_HOSTS, addressOf, DATA_HOSTS, HOSTS, type HostName, type Layout } from './layout.ts'

const run = promisify(execFile)

const DAYS = '825'
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Paths of PEM files. */
export interface HostCertificate {
  /** The authority of the cluster. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

const folderIn = (dir: string): string => join(dir, 'tls')

export const certificateOf = (dir: string, host: HostName): HostCertificate => ({
  ca: join(folderIn(dir), 'ca.pem'),
  certificate: join(folderIn(dir), `${host}.pem`),
  key: join(folderIn(dir), `${host}.key`),
})

/** Addresses by which clients reach the host. The proxy of an app host passes connections to Postgres through. */
const namesOf = (layout: Layout, host: HostName): readonly string[] => {
  const isData = (DATA_HOSTS as readonly string[]).includes(host)
  return [host, ...(isData ? APP_HOSTS : [])].map((each) => addressOf(layout, each))
}

/** The key of the authority exists only while this runs. `own`: gives a file to the user of the servers. */
export async function makeCertificates(
  dir: string,
  layout: Layout,
  own: (path: string) => Promise<void>,
): Promise<void> {
  const folder = folderIn(dir)
  rmSync(folder, { recursive: true, force: true })
  makeFolder(folder)
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder })
  await openssl(
    ...['req', '-x509', ...NEW_KEY, '-subj', '/CN=Clearbatch cluster', '-days', DAYS],
    ...['-keyout', 'ca.key', '-out', 'ca.pem'],
  )
  await own(join(folder, 'ca.pem'))
  await Promise.all(HOSTS.map((host) => issue(host)))
  rmSync(join(folder, 'ca.key'))

  async function issue(host: HostName): Promise<void> {
    const { certificate, key } = certificateOf(dir, host)
    const [request, extensions] = [`${host}.csr`, `${host}.ext`]
    writeFileSync(join(folder, extensions), extensionsOf(namesOf(layout, host)))
    await openssl('req', ...NEW_KEY, '-subj', `/CN=${host}`, '-keyout', key, '-out', request)
    await openssl(
      ...['x509', '-req', '-in', request, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-days', DAYS],
      ...['-set_serial', `0x${randomBytes(16).toString('hex')}`, '-extfile', extensions, '-out', certificate],
    )
    for (const path of [request, extensions]) rmSync(join(folder, path))
    await Promise.all([own(certificate), own(key)])
  }
}

const extensionsOf = (addresses: readonly string[]): string =>
  [
    `subjectAltName = ${addresses.map((address) => `IP:${address}`).join(', ')}`,
    'basicConstraints = critical, CA:FALSE',
    'keyUsage = critical, digitalSignature',
    'extendedKeyUsage = serverAuth, clientAuth',
    'subjectKeyIdentifier = hash',
    'authorityKeyIdentifier = keyid',
    '',
  ].join('\n')

/** Authorities of clusters that this process has started or inspected. */
const trusted = new Set<string>()

/** HTTPS requests of this process accept the servers of such clusters alone. */
export function trustCluster(dir: string): void {
  const { ca } = certificateOf(dir, 'edge')
  // A start that ended before it had certificates has started no server.
  if (!existsSync(ca)) return
  const authority = readFileSync(ca, 'utf8')
  if (trusted.has(authority)) return
  trusted.add(authority)
  // The default authorities take a second to load and are of no use: the tools of this machine request no other server.
  setDefaultCACertificates([...trusted])
}

/** Variables of a process on the host: TLS of its servers, and of its connections to other processes. */
export function tlsVariables(dir: string, host: HostName): Readonly<Record<string, string>> {
  const { ca, certificate, key } = certificateOf(dir, host)
  return { NODE_EXTRA_CA_CERTS: ca, TLS_CERT_FILE: certificate, TLS_KEY_FILE: key }
}

/** Further variables of processes that connect to the database, to the engine and to Redis. */
export function serviceTlsVariables(dir: string, host: HostName): Readonly<Record<string, string>> {
  const { ca, certificate, key } = certificateOf(dir, host)
  return {
    ENGINE_TLS_CA_FILE: ca,
    ENGINE_TLS_CERT_FILE: certificate,
    ENGINE_TLS_KEY_FILE: key,
    REDIS_CA_FILE: ca,
    REDIS_CERT_FILE: certificate,
    REDIS_KEY_FILE: key,
  }
}
