/** Connections to a real Postgres by TLS, and by a password from a file, while both change. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { createPool } from '../../db/client.ts'
import { createNotifications } from '../../db/notifications.ts'
import { ConfigError, environment } from '../../service/environment.ts'
import { type Postgres, startPostgres } from '../../stack/postgres.ts'
import { userSwitch } from '../../stack/user-switch.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import {
  type CertificatePair,
  createAuthority,
  eventually,
  hasOpenssl,
  replaceFile,
  type TestAuthority,
} from '../support/certificates.ts'

/** Logins with a client certificate in the role `secured` only. */
const RULES = `
hostssl all secured 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
host all secured 127.0.0.1/32 reject
host all all 127.0.0.1/32 scram-sha-256
`

describe('connections to Postgres', function () {
  this.timeout(90_000)
  let authority: TestAuthority
  let other: TestAuthority
  let server: Postgres
  let admin: pg.Client
  let client: CertificatePair

  before(async function () {
    if (!hasOpenssl()) skipBecause(this, 'openssl is not installed')
    authority = createAuthority()
    other = createAuthority()
    client = authority.issue('client')
    const { certificate, key } = authority.issue('postgres')
    const user = await userSwitch(['true'])
    const rules = join(authority.dir, 'hba.conf')
    writeFileSync(rules, RULES)
    await user.own(key)
    server = await startPostgres({
      dir: await mkdtemp(join(tmpdir(), 'clearbatch-tls-')),
      temporary: true,
      settings: [
        ...['ssl=on', `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`, `ssl_ca_file=${authority.ca}`],
        ...[`hba_file=${rules}`, 'listen_addresses=127.0.0.1,127.0.0.2'],
      ],
    })
    admin = new pg.Client(overTcp(server.url).href)
    await admin.connect()
    await admin.query("create role secured login password 'first'")
  })
  after(async () => {
    await admin?.end()
    await server?.stop()
    authority?.remove()
    other?.remove()
  })

  function overTcp(text: string): URL {
    const url = new URL(text)
    url.searchParams.delete('host')
    return url
  }

  /** The URL of the role `secured`, and the environment. */
  function addressFor(env: Record<string, string>, change: (url: URL) => void = () => {}): string {
    const url = overTcp(server.url)
    url.username = 'secured'
    url.password = 'first'
    change(url)
    return environment({ DATABASE_URL: url.href, ...env }, 'test').database()
  }

  const withClient = (ca: string = authority.ca): Record<string, string> => ({
    DATABASE_CA_FILE: ca,
    DATABASE_CERT_FILE: client.certificate,
    DATABASE_KEY_FILE: client.key,
  })
  const pool = (url: string, connections = 1) => createPool({ url, connections, name: 'secured' })

  async function versionBy(url: string): Promise<string> {
    const own = pool(url)
    try {
      const { rows } = await own.query('select version from pg_stat_ssl where pid = pg_backend_pid()')
      return rows[0].version
    } finally {
      await own.end()
    }
  }
  const failureOf = (url: string): Promise<string> =>
    versionBy(url).then(
      () => 'none',
      (error: Error & { code?: string }) => `${error.code} ${error.message}`,
    )

  it('when authority and client certificate are set, connections are encrypted and verified on both sides', async () => {
    expect(await versionBy(addressFor(withClient()))).to.equal('TLSv1.3')
    expect(await failureOf(addressFor({ DATABASE_CA_FILE: authority.ca }))).to.match(/client certificate/)
    expect(await failureOf(addressFor({}))).to.match(/no encryption|rejects/)
  })

  it('when the server has another authority or the URL another host, no connection is opened', async () => {
    expect(await failureOf(addressFor(withClient(other.ca)))).to.match(/certificate|issuer/)
    const elsewhere = addressFor(withClient(), (url) => {
      url.hostname = '127.0.0.2'
    })
    expect(await failureOf(elsewhere)).to.match(/^ERR_TLS_CERT_ALTNAME_INVALID /)
  })

  it('when files are replaced, new connections use them and an open connection stays', async () => {
    const ca = join(authority.dir, 'current-ca.pem')
    copyFileSync(other.ca, ca)
    const url = addressFor(withClient(ca))
    expect(await failureOf(url)).to.match(/certificate|issuer/)
    replaceFile(ca, authority.ca)
    await eventually(() => versionBy(url))
    const own = pool(url, 2)
    const open = await own.connect()
    replaceFile(ca, other.ca)
    await eventually(async () => expect(await failureOf(url)).to.match(/certificate|issuer/))
    expect((await open.query('select 1 as one')).rows).to.deep.equal([{ one: 1 }])
    open.release()
    await own.end()
  })

  it('when a password is in a file, a changed password needs no restart of pools and listeners', async () => {
    const file = join(authority.dir, 'password')
    writeFileSync(file, 'first\n')
    const url = addressFor({ ...withClient(), DATABASE_PASSWORD_FILE: file }, (each) => {
      each.password = ''
    })
    const pools = [pool(url, 2), pool(url, 2)]
    const heard: string[] = []
    const notifications = createNotifications(url, 'test')
    notifications.on('news', (payload) => heard.push(payload))
    await notifications.start()
    const ask = () => Promise.all(pools.map((each) => each.query('select 1')))
    await ask()
    for (const password of ['second', 'third']) {
      await admin.query(`alter role secured password '${password}'`)
      await ask()
      writeFileSync(file, `${password}\n`)
      // Every open connection ends: the next ones need the new password.
      await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'secured'")
      await eventually(ask)
      await eventually(async () => expect(notifications.isListening()).to.equal(true))
      await admin.query(`select pg_notify('news', '${password}')`)
      await eventually(async () => expect(heard.at(-1)).to.equal(password))
    }
    writeFileSync(file, 'wrong')
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'secured'")
    await eventually(async () => expect(await failureOf(url)).to.match(/^28P01 /))
    await notifications.stop()
    for (const each of pools) await each.end()
    await admin.query("alter role secured password 'first'")
  })

  it('when the connection string has a mode, it is honoured', async () => {
    const asOwner = (mode: string) => {
      const url = overTcp(server.url)
      url.searchParams.set('sslmode', mode)
      return environment({ DATABASE_URL: url.href }, 'test').database()
    }
    expect(await versionBy(asOwner('disable'))).to.equal(null)
    expect(await versionBy(asOwner('no-verify'))).to.equal('TLSv1.3')
    expect(await failureOf(asOwner('verify-full'))).to.match(/certificate|issuer/)
    const url = overTcp(server.url)
    url.searchParams.set('sslrootcert', authority.ca)
    url.searchParams.set('sslmode', 'verify-full')
    expect(await versionBy(environment({ DATABASE_URL: url.href }, 'test').database())).to.equal('TLSv1.3')
  })

  it('when settings contradict each other, the start refuses them by name, without the password', () => {
    const withMode = (mode: string) => (url: URL) => url.searchParams.set('sslmode', mode)
    const password = join(authority.dir, 'empty')
    writeFileSync(password, '\n')
    const refused: readonly [RegExp, Record<string, string>, ((url: URL) => void)?][] = [
      [/^DATABASE_URL has sslmode=disable although/, withClient(), withMode('disable')],
      [/^DATABASE_URL has sslmode=prefer: expected one of disable/, {}, withMode('prefer')],
      [/^DATABASE_URL has the parameter ssl:/, {}, (url) => url.searchParams.set('ssl', 'true')],
      [
        /^DATABASE_CA_FILE is set although/,
        withClient(),
        (url) => url.searchParams.set('sslrootcert', '/ca'),
      ],
      [/^DATABASE_URL asks for TLS on a Unix/, withClient(), (url) => url.searchParams.set('host', '/run')],
      [/^DATABASE_KEY_FILE is not set although/, { DATABASE_CERT_FILE: client.certificate }],
      [/^DATABASE_CA_FILE is ".*", which cannot be read: ENOENT$/, { DATABASE_CA_FILE: '/none' }],
      [/^DATABASE_URL has a password although/, { DATABASE_PASSWORD_FILE: password }],
      [/^DATABASE_PASSWORD_FILE is ".*", which is empty$/, { DATABASE_PASSWORD_FILE: password }, clear],
    ]
    for (const [message, env, change] of refused) {
      expect(() => addressFor(env, change), String(message)).to.throw(ConfigError, message)
      expect(() => addressFor(env, change)).not.to.throw(ConfigError, /first/)
    }
  })
})

function clear(url: URL): void {
  url.password = ''
}
