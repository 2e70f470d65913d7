/** Certificates of processes: real HTTPS servers whose files change, and files that are refused. */
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { certificateExpiries, reportCertificates } from '../../service/certificates.ts'
import { ConfigError, environment } from '../../service/environment.ts'
import { createReadiness, serveHealth } from '../../service/health.ts'
import type { HttpListener } from '../../service/http-listener.ts'
import { createRegistry } from '../../service/metrics.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import {
  type CertificatePair,
  createAuthority,
  eventually,
  hasOpenssl,
  replaceFile,
  type TestAuthority,
} from '../support/certificates.ts'

interface Answer {
  readonly status: number
  readonly text: string
  /** Common name of the server's certificate. */
  readonly name: string
  /** Port of the client: differs for each connection. */
  readonly port: number | undefined
}

describe('certificates', function () {
  this.timeout(60_000)
  let authority: TestAuthority
  let first: CertificatePair
  let second: CertificatePair
  let server: HttpListener | undefined
  const logged: { readonly details: object; readonly message: string }[] = []
  const note = (details: object, message: string): void => void logged.push({ details, message })
  const logger = { debug: note, info: note, warn: note, error: note }

  before(function () {
    if (!hasOpenssl()) skipBecause(this, 'openssl is not installed')
    authority = createAuthority()
    first = authority.issue('first', { days: 20 })
    second = authority.issue('second', { days: 25 })
    reportCertificates(logger)
  })
  afterEach(async () => {
    await server?.close()
    server = undefined
  })
  after(() => authority?.remove())

  /** A copy of the first pair, in files that a test may change. */
  function copyOfFirst(name: string): CertificatePair {
    const pair = { certificate: `${authority.dir}/${name}.crt`, key: `${authority.dir}/${name}.pk` }
    replaceFile(pair.certificate, first.certificate)
    replaceFile(pair.key, first.key)
    return pair
  }

  const envOf = ({ certificate, key }: CertificatePair) => ({ TLS_CERT_FILE: certificate, TLS_KEY_FILE: key })

  async function serve(pair: CertificatePair): Promise<HttpListener> {
    const { internal } = environment({ ...envOf(pair), INTERNAL_PORT: '0' }, 'test').process(0)
    const { registry } = createRegistry()
    return serveHealth({ ...internal, registry, logger, readiness: createReadiness([], logger) })
  }

  const get = (path: string, agent: Agent, host = 'localhost'): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const options = { host, port: server?.port, path, agent, ca: readFileSync(authority.ca) }
      request(options, (response) => {
        const socket = response.socket as TLSSocket
        const port = socket.localPort
        const name = String(socket.getPeerCertificate().subject.CN)
        response.setEncoding('utf8')
        let text = ''
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode as number, text, name, port }))
      })
        .on('error', reject)
        .end()
    })
  const onNewConnection = (): Promise<Answer> => get('/health/live', new Agent({ keepAlive: false }))

  it('when a certificate is replaced, new connections get the new one and an open connection stays', async () => {
    const pair = copyOfFirst('replaced')
    server = await serve(pair)
    const kept = new Agent({ keepAlive: true, maxSockets: 1 })
    const opened = await get('/health/live', kept)
    expect([opened.status, opened.name]).to.deep.equal([200, 'first'])
    replaceFile(pair.certificate, second.certificate)
    replaceFile(pair.key, second.key)
    await eventually(async () => expect((await onNewConnection()).name).to.equal('second'))
    const later = await get('/health/live', kept)
    expect([later.status, opened.name, later.port]).to.deep.equal([200, 'first', opened.port])
    kept.destroy()
  })

  it('when the new files are broken or do not fit, the old certificate stays in use and an error is logged', async () => {
    const pair = copyOfFirst('broken')
    server = await serve(pair)
    const errors = (variable: string) =>
      logged.filter((line) => 'reason' in line.details && String(line.details.reason).startsWith(variable))
    const before = errors('TLS_KEY_FILE').length
    replaceFile(pair.certificate, second.certificate)
    await eventually(async () => expect(errors('TLS_KEY_FILE').length).to.equal(before + 1))
    writeFileSync(pair.certificate, 'no certificate')
    await eventually(async () =>
      expect(JSON.stringify(errors('TLS_CERT_FILE'))).to.include('no valid certificate'),
    )
    expect((await onNewConnection()).name).to.equal('first')
    expect(JSON.stringify(logged)).not.to.include('PRIVATE KEY')
  })

  it('when a process uses certificates, its metrics have their earliest expiry by role', async () => {
    server = await serve(first)
    const { text } = await get('/metrics', new Agent({ keepAlive: false }))
    const days = ((certificateExpiries().get('server') as number) * 1000 - Date.now()) / 86_400_000
    expect(days).to.be.within(19.9, 20.1)
    expect(text).to.match(/^certificate_expires_at_seconds\{role="server"\} 1\d{9}$/m)
  })

  it('when a certificate has expired at the start, the error states its file and when it expired', () => {
    const expired = authority.issue('expired', { days: -1 })
    expect(() => environment(envOf(expired), 'test').process(0)).to.throw(
      ConfigError,
      /^TLS_CERT_FILE is ".*expired\.pem", whose certificate expired at \d{4}-.*: expected a valid one$/,
    )
  })

  it('when files are missing, swapped or of two pairs, the error names the variable', () => {
    const read = (env: Record<string, string>) => () => environment(env, 'test').process(0)
    const { certificate, key } = first
    expect(read({ TLS_CERT_FILE: certificate })).to.throw(ConfigError, /^TLS_KEY_FILE is not set although/)
    expect(read({ TLS_KEY_FILE: key })).to.throw(ConfigError, /^TLS_CERT_FILE is not set although/)
    expect(read(envOf({ certificate, key: second.key }))).to.throw(
      ConfigError,
      /^TLS_KEY_FILE .*is not the key/,
    )
    expect(read(envOf({ certificate: key, key }))).to.throw(
      ConfigError,
      /^TLS_CERT_FILE .*no valid certificate/,
    )
    expect(read(envOf({ certificate: '/none.pem', key }))).to.throw(ConfigError, /cannot be read: ENOENT$/)
  })
})
