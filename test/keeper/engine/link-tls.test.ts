/** The engine's link between hosts: TLS with certificates on both sides. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { engineAccess } from '../../../keeper/engine/link/access.ts'
import { CLIENT_LIMITS, createEngineClient, type EngineClient } from '../../../keeper/engine/link/client.ts'
import { type Links, listen } from '../../../keeper/engine/link/listen.ts'
import { RecentReplies } from '../../../keeper/engine/link/recent-replies.ts'
import { clientOptions, linkTls } from '../../../keeper/engine/link/tls.ts'
import type { TlsSource } from '../../../service/certificates.ts'
import type { Env } from '../../../service/environment.ts'
import type { Logger } from '../../../service/logger.ts'
import { freePort } from '../../../stack/ports.ts'
import {
  type CertificatePair,
  createAuthority,
  hasOpenssl,
  replaceFile,
  type TestAuthority,
} from '../../support/certificates.ts'
import { waitFor } from '../../support/patience.ts'
import { type Command, IDENTITY, KEYS, monotonic, TIMER } from './support/member-fixture.ts'

class Lines implements Logger {
  readonly fields: Record<string, unknown>[] = []
  readonly #note = (fields: object, message: string): void => void this.fields.push({ ...fields, message })
  readonly debug = (): void => {}
  readonly info = (): void => {}
  readonly warn = this.#note
  readonly error = this.#note
}

const filesOf = (ca: string, { certificate, key }: CertificatePair): Env => ({
  ENGINE_TLS_CA_FILE: ca,
  ENGINE_TLS_CERT_FILE: certificate,
  ENGINE_TLS_KEY_FILE: key,
})
const tlsOf = (files: Env): TlsSource => linkTls(files, 'ENGINE_LISTEN', null) as TlsSource

describe('the link to the engine between hosts', () => {
  let own: TestAuthority
  let foreign: TestAuthority
  let server: CertificatePair
  let client: CertificatePair
  const links: Links[] = []
  const clients: EngineClient[] = []

  before(function () {
    if (!hasOpenssl()) return this.skip()
    own = createAuthority()
    foreign = createAuthority()
    server = own.issue('engine')
    client = own.issue('client')
  })
  after(() => {
    own?.remove()
    foreign?.remove()
  })
  afterEach(async () => {
    for (const each of clients.splice(0)) each.close()
    for (const each of links.splice(0)) await each.close()
  })

  /** A member that owns the journal and answers each command with its name. */
  async function member(tls: TlsSource | null): Promise<{ readonly port: number; readonly log: Lines }> {
    const [port, log] = [await freePort(), new Lines()]
    const ports = {
      identity: IDENTITY,
      keys: KEYS,
      recent: new RecentReplies(100),
      member: randomBytes(8).toString('hex'),
      monotonic,
      token: () => 1,
      logger: log,
      parse: (value: unknown) => value as Command,
      allows: () => true,
      classify: () => ({ class: 'placement', account: 1 }) as const,
      submit: async ({ command }: { readonly command: Command }) => ({ answer: command.name }),
    }
    links.push(await listen<Command>({ listen: { host: '127.0.0.1', port }, tls }, ports))
    return { port, log }
  }

  function connected(
    port: number,
    tls: TlsSource | null,
    handshakeMs = CLIENT_LIMITS.handshakeMs,
  ): { readonly link: EngineClient; readonly log: Lines } {
    const log = new Lines()
    const to = { host: '127.0.0.1', port }
    const open = (): Duplex => (tls === null ? connect(to) : connectTls({ ...to, ...clientOptions(tls) }))
    const link = createEngineClient(
      {
        identity: IDENTITY,
        role: 'api',
        key: KEYS.get('api') as Buffer,
        members: [`127.0.0.1:${port}`],
        open,
        timer: TIMER,
        monotonic,
        logger: log,
      },
      { ...CLIENT_LIMITS, handshakeMs },
    )
    clients.push(link)
    return { link, log }
  }

  const noted = (log: Lines, field: string, value: string): Promise<unknown> =>
    waitFor(
      async () => log.fields.filter((fields) => fields[field] === value),
      (found) => found.length > 0,
    )
  const isNotExecuted = async (link: EngineClient): Promise<void> => {
    expect(await link.submit({ name: 'a' }, 300)).to.deep.equal({ none: 'not_executed' })
  }

  it('when both sides have certificates of one authority, commands are answered, and no byte of them is readable on the wire', async () => {
    const { port } = await member(tlsOf(filesOf(own.ca, server)))
    const wire: Buffer[] = []
    const proxy = createServer((from) => {
      const to = connect(port, '127.0.0.1')
      for (const [a, b] of [
        [from, to],
        [to, from],
      ] as const) {
        a.on('data', (bytes) => wire.push(bytes))
        a.on('error', () => {})
        a.pipe(b)
      }
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const { link } = connected((proxy.address() as AddressInfo).port, tlsOf(filesOf(own.ca, client)))
    expect(await link.submit({ name: 'a secret order' }, 20_000)).to.deep.equal({ answer: 'a secret order' })
    expect(wire.length).to.be.above(0)
    expect(Buffer.concat(wire).includes('secret')).to.equal(false)
    expect(Buffer.concat(wire).includes('challenge')).to.equal(false)
    proxy.close()
  })

  it('when the client has a certificate of another authority, both sides log the reason and no command is executed', async () => {
    const { port, log } = await member(tlsOf(filesOf(own.ca, server)))
    // It accepts the engine, and the engine does not accept it.
    const { link, log: clientLog } = connected(port, tlsOf(filesOf(own.ca, foreign.issue('client'))))
    await noted(log, 'received', 'a certificate of another authority')
    await noted(clientLog, 'received', 'the end of the connection after the TLS handshake')
    await isNotExecuted(link)
  })

  it('when the engine has a certificate of another authority, the client refuses it and sends nothing', async () => {
    const { port } = await member(tlsOf(filesOf(own.ca, server)))
    const { link, log } = connected(port, tlsOf(filesOf(foreign.ca, client)))
    await noted(log, 'received', 'a certificate of another authority')
    await isNotExecuted(link)
  })

  it('when the client has TLS and the engine has none, the client logs it', async () => {
    const { port } = await member(null)
    const { link, log } = connected(port, tlsOf(filesOf(own.ca, client)))
    await noted(log, 'received', 'a connection without TLS')
    await isNotExecuted(link)
  })

  it('when the engine has TLS and the client has none, both sides log it', async () => {
    const { port, log } = await member(tlsOf(filesOf(own.ca, server)))
    const { link, log: clientLog } = connected(port, null, 300)
    await waitFor(
      async () => clientLog.fields.map(({ message }) => message),
      (messages) => messages.some((message) => `${message}`.includes('ENGINE_TLS_CERT_FILE')),
    )
    await noted(log, 'received', 'no TLS handshake')
    await isNotExecuted(link)
  })

  it('when the client has no certificate, the engine refuses it', async () => {
    const { port, log } = await member(tlsOf(filesOf(own.ca, server)))
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca: tlsOf(filesOf(own.ca, client)).current().ca as string,
    })
    socket.on('error', () => {})
    await noted(log, 'received', 'no certificate of the client')
    socket.destroy()
  })

  it('when the certificate of the engine is replaced, new connections get the new one without a restart', async () => {
    const shown = async (port: number): Promise<string> => {
      const socket = connectTls({ host: '127.0.0.1', port, ...clientOptions(tlsOf(filesOf(own.ca, client))) })
      await once(socket, 'secureConnect')
      const { fingerprint256 } = socket.getPeerCertificate()
      socket.destroy()
      return fingerprint256
    }
    const replaced = own.issue('replaced')
    const { port } = await member(tlsOf(filesOf(own.ca, replaced)))
    const first = await shown(port)
    const next = own.issue('next')
    replaceFile(replaced.key, next.key)
    replaceFile(replaced.certificate, next.certificate)
    await waitFor(
      () => shown(port),
      (found) => found !== first,
    )
  })

  it('when files are missing, expired or set for a Unix socket, the start names the variable', () => {
    const files = filesOf(own.ca, client)
    const problemOf = (env: Env, socket: string | null = null): string => {
      try {
        linkTls(env, 'ENGINE_LISTEN', socket)
        return 'none'
      } catch (error) {
        return (error as Error).message
      }
    }
    for (const [variable, other] of [
      ['ENGINE_TLS_CA_FILE', 'ENGINE_TLS_CERT_FILE'],
      ['ENGINE_TLS_CERT_FILE', 'ENGINE_TLS_KEY_FILE'],
      ['ENGINE_TLS_KEY_FILE', 'ENGINE_TLS_CERT_FILE'],
    ] as const)
      expect(problemOf({ ...files, [variable]: '' })).to.equal(
        `${variable} is not set although ${other} is: expected both`,
      )
    expect(problemOf(filesOf(own.ca, own.issue('old', { days: -1 })))).to.match(
      /^ENGINE_TLS_CERT_FILE is ".*old.pem", whose certificate expired at .*: expected a valid one$/,
    )
    expect(problemOf(files, '/run/engine')).to.equal(
      'ENGINE_LISTEN has the socket "/run/engine" although ENGINE_TLS_CA_FILE is set: expected host:port, or no certificates',
    )
    const env = {
      ...files,
      ENGINE_URL: 'app1:7100,/run/engine',
      ENGINE_KEYS_FILE: 'test/support/engine-keys.json',
    }
    expect(() => engineAccess(env, 'api', ['api'])).to.throw('ENGINE_URL has the socket "/run/engine"')
  })
})
