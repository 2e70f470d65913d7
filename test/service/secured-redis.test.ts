/** Connections to a real Redis, and to its Sentinel, by TLS. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { certificateExpiries } from '../../service/certificates.ts'
import { ConfigError } from '../../service/environment.ts'
import { openRedis, redisUrlOf } from '../../service/redis.ts'
import { freePort } from '../../stack/ports.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import {
  type CertificatePair,
  createAuthority,
  eventually,
  hasOpenssl,
  replaceFile,
  type TestAuthority,
} from '../support/certificates.ts'

const PASSWORD = 'of-redis'

describe('connections to Redis by TLS', function () {
  this.timeout(60_000)
  let authority: TestAuthority
  let other: TestAuthority
  let client: CertificatePair
  let port: number
  let sentinelPort: number
  const servers: ChildProcess[] = []

  before(async function () {
    if (!hasOpenssl()) skipBecause(this, 'openssl is not installed')
    if (spawnSync('redis-server', ['--version']).error) skipBecause(this, 'redis-server is not installed')
    authority = createAuthority()
    other = createAuthority()
    client = authority.issue('client')
    const { certificate, key } = authority.issue('redis')
    port = await freePort()
    sentinelPort = await freePort()
    const secured = [
      ...['port 0', 'bind 127.0.0.1', `dir ${authority.dir}`, `requirepass ${PASSWORD}`],
      ...[`tls-cert-file ${certificate}`, `tls-key-file ${key}`, `tls-ca-cert-file ${authority.ca}`],
      ...['tls-auth-clients yes', 'tls-replication yes'],
    ]
    start('redis', [], [...secured, `tls-port ${port}`, 'save ""'])
    start(
      'sentinel',
      ['--sentinel'],
      [
        ...[...secured, `tls-port ${sentinelPort}`, `sentinel sentinel-pass ${PASSWORD}`],
        ...[`sentinel monitor main 127.0.0.1 ${port} 1`, `sentinel auth-pass main ${PASSWORD}`],
      ],
    )
    await eventually(() => pingBy(server()))
  })
  after(async () => {
    for (const each of servers) {
      each.kill('SIGKILL')
      if (each.exitCode === null && each.signalCode === null) await once(each, 'exit')
    }
    authority?.remove()
    other?.remove()
  })

  function start(name: string, flags: readonly string[], lines: readonly string[]): void {
    const file = join(authority.dir, `${name}.conf`)
    writeFileSync(file, `${lines.join('\n')}\n`)
    servers.push(spawn('redis-server', [file, ...flags], { stdio: 'ignore' }))
  }

  const address = (protocol = 'rediss'): string => `${protocol}://:${PASSWORD}@localhost:${port}/3`
  const files = (ca: string = authority.ca): Record<string, string> => ({
    REDIS_CA_FILE: ca,
    REDIS_CERT_FILE: client.certificate,
    REDIS_KEY_FILE: client.key,
  })
  const server = (ca?: string): string => redisUrlOf({ REDIS_URL: address(), ...files(ca) }) as string

  const connectionBy = (url: string) =>
    openRedis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })

  async function pingBy(url: string): Promise<string> {
    const redis = connectionBy(url)
    redis.on('error', () => {})
    try {
      await redis.connect()
      return await redis.client('INFO')
    } finally {
      redis.disconnect()
    }
  }
  const failureOf = (url: string): Promise<string> =>
    pingBy(url).then(
      () => 'none',
      (error: Error) => error.message,
    )

  it('when authority and client certificate are set, a connection is verified on both sides', async () => {
    expect(await pingBy(server())).to.match(/ db=3 /)
    const roles = [...certificateExpiries().keys()]
    expect(roles).to.include('redis_ca').and.to.include('redis_client')
    expect(await failureOf(server(other.ca))).not.to.equal('none')
    const anonymous = redisUrlOf({ REDIS_URL: address(), REDIS_CA_FILE: authority.ca }) as string
    expect(await failureOf(anonymous)).not.to.equal('none')
    expect(await failureOf(address('redis'))).not.to.equal('none')
  })

  it('when Sentinels name the primary, their connections use TLS too', async () => {
    const url = `rediss+sentinel://:${PASSWORD}@localhost:${sentinelPort}/main`
    const secured = redisUrlOf({ REDIS_URL: url, ...files() }) as string
    await eventually(() => pingBy(secured))
  })

  it('when the authority is replaced, new connections use it and an open connection stays', async () => {
    const ca = join(authority.dir, 'current-ca.pem')
    copyFileSync(authority.ca, ca)
    const open = connectionBy(server(ca))
    await open.connect()
    replaceFile(ca, other.ca)
    await eventually(async () => expect(await failureOf(server(ca))).not.to.equal('none'))
    expect(await open.ping()).to.equal('PONG')
    replaceFile(ca, authority.ca)
    await eventually(() => pingBy(server(ca)))
    open.disconnect()
  })

  it('when files are set without TLS, or are unusable, the start refuses them by name, without the password', () => {
    const read = (url: string, env: Record<string, string>) => () => redisUrlOf({ REDIS_URL: url, ...env })
    expect(read(address('redis'), files())).to.throw(ConfigError, /^REDIS_URL has no TLS although files/)
    expect(read(address(), files('/none'))).to.throw(ConfigError, /^REDIS_CA_FILE .* cannot be read: ENOENT$/)
    const half = { REDIS_KEY_FILE: client.key }
    expect(read(address(), half)).to.throw(ConfigError, /^REDIS_CERT_FILE is not set although/)
    expect(read(address('redis'), files())).not.to.throw(ConfigError, PASSWORD)
  })
})
