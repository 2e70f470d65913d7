import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { redisAddressOf } from '../../../service/redis.ts'
import { certificateOf, type HostCertificate, makeCertificates } from '../../../stack/cluster/certificates.ts'
import {
  databaseProxyConfiguration,
  edgeProxyConfiguration,
  etcdArguments,
  ownerUrlOf,
  patroniConfiguration,
  redisConfiguration,
  redisUrlOf,
  sentinelConfiguration,
} from '../../../stack/cluster/configuration.ts'
import {
  addressOf,
  DATA_HOSTS,
  HOSTS,
  type Layout,
  launcherOf,
  namespaceOf,
  publicUrl,
} from '../../../stack/cluster/layout.ts'
import { creationScript, janitorScript, removalScript } from '../../../stack/cluster/network.ts'
import { clusterOptionsOf } from '../../../stack/cluster/options.ts'
import { findPrograms, missingPackages } from '../../../stack/cluster/packages.ts'
import { acceptsCommits, type PostgresNode, primaryOf } from '../../../stack/cluster/patroni.ts'
import { stateOf, storedState } from '../../../stack/cluster/state.ts'
import { skipBecause } from '../../e2e/support/guide.ts'

const LAYOUT: Layout = { network: 'namespaces', id: 7, port: 9000 }
const LOOPBACK: Layout = { ...LAYOUT, network: 'loopback' }
const TLS: HostCertificate = { ca: '/tls/ca.pem', certificate: '/tls/host.pem', key: '/tls/host.key' }
const SECRETS = {
  database: 'owner-password',
  replication: 'replication-password',
  rewind: 'rewind-password',
  patroni: 'patroni-password',
  redis: 'redis-password',
  signers: 'signers-secret',
}

describe('stack/cluster/layout', () => {
  it('when hosts are laid out, each has an address of its own in either network', () => {
    for (const layout of [LAYOUT, LOOPBACK])
      expect(new Set(HOSTS.map((host) => addressOf(layout, host))).size).to.equal(HOSTS.length)
    expect(addressOf(LAYOUT, 'data1')).to.equal('10.201.7.11')
    expect(addressOf(LOOPBACK, 'data1')).to.equal('127.201.7.11')
    expect(publicUrl(LAYOUT)).to.equal('http://10.201.7.31:9000')
  })

  it('when a host is a namespace, programs start in it, and on loopback as they are', () => {
    expect(launcherOf(LAYOUT, 'app2')).to.deep.equal(['ip', 'netns', 'exec', 'clearbatch-7-app2'])
    expect(launcherOf(LOOPBACK, 'app2')).to.deep.equal([])
  })
})

describe('stack/cluster/configuration', () => {
  it('when etcd is configured, each member knows all three, and only its own URLs differ', () => {
    const args = etcdArguments(LAYOUT, 'data2', '/state/etcd', TLS)
    const argumentOf = (flag: string) => args[args.indexOf(flag) + 1]
    expect(argumentOf('--initial-cluster')).to.equal(
      'data1=https://10.201.7.11:2380,data2=https://10.201.7.12:2380,data3=https://10.201.7.13:2380',
    )
    expect(argumentOf('--listen-client-urls')).to.equal('https://10.201.7.12:2379')
    expect(argumentOf('--data-dir')).to.equal('/state/etcd')
  })

  it('when Patroni is configured, commits need a second node, and its timeouts satisfy its own rule', () => {
    const text = patroniConfiguration(
      LAYOUT,
      'data3',
      SECRETS,
      { dataDir: '/pg/data', binDir: '/pg/bin' },
      TLS,
    )
    const { bootstrap, postgresql, etcd3, restapi } = JSON.parse(text)
    const { dcs } = bootstrap
    expect([dcs.synchronous_mode, dcs.synchronous_mode_strict]).to.deep.equal([true, true])
    expect(dcs.ttl).to.be.at.least(dcs.loop_wait + 2 * dcs.retry_timeout)
    expect(etcd3.hosts).to.have.length(3)
    expect(postgresql.listen).to.equal('10.201.7.13:5432')
    expect(restapi.authentication.password).to.equal('patroni-password')
    expect(postgresql.pg_hba.join()).to.include('10.201.7.0/24 scram-sha-256').and.not.include('trust')
    const local = JSON.parse(
      patroniConfiguration(LOOPBACK, 'data3', SECRETS, { dataDir: '', binDir: '' }, TLS),
    )
    expect(local.postgresql.pg_hba.join()).to.include('127.0.0.0/8')
  })

  it('when proxies are configured, HAProxy accepts them, and each leads to all servers', async function () {
    const isInstalled = ['haproxy', 'openssl'].every((name) => spawnSync(name, ['-v']).error === undefined)
    if (!isInstalled) return skipBecause(this, 'haproxy or openssl is not installed')
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-haproxy-'))
    after(() => rmSync(folder, { recursive: true }))
    await makeCertificates(folder, LAYOUT, async () => {})
    const tls = certificateOf(folder, 'app1')
    const texts = [
      databaseProxyConfiguration(LAYOUT, 'app1', tls),
      edgeProxyConfiguration(LAYOUT, tls),
    ] as const
    const [database, edge] = texts
    const verified = `verify required ca-file ${tls.ca}`
    for (const last of [11, 12, 13])
      expect(database).to.include(` 10.201.7.${last}:5432 check port 8008 check-ssl ${verified}\n`)
    for (const last of [21, 22]) expect(edge).to.include(` 10.201.7.${last}:8080 check ssl ${verified}\n`)
    expect(edge).to.include('bind 10.201.7.31:9000')
    for (const text of texts) {
      const file = join(folder, 'haproxy.cfg')
      writeFileSync(file, text)
      const { status, stderr } = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
      expect(status, stderr).to.equal(0)
      expect(stderr).not.to.match(/WARNING/)
    }
  })

  it('when servers are configured, none accepts a connection without TLS', () => {
    for (const host of DATA_HOSTS) {
      expect(etcdArguments(LAYOUT, host, '/etcd', TLS).join(' ')).not.to.include('http://')
      const dirs = { dataDir: '/pg/data', binDir: '/pg/bin' }
      const { postgresql, restapi, etcd3 } = JSON.parse(
        patroniConfiguration(LAYOUT, host, SECRETS, dirs, TLS),
      )
      for (const rule of postgresql.pg_hba) expect(rule).to.match(/^hostssl /)
      expect(postgresql.parameters.ssl).to.equal('on')
      for (const login of Object.values<{ sslmode: string }>(postgresql.authentication))
        expect(login.sslmode).to.equal('verify-full')
      expect([restapi.certfile, etcd3.protocol]).to.deep.equal([TLS.certificate, 'https'])
      for (const textOf of [redisConfiguration, sentinelConfiguration]) {
        const text = textOf(LAYOUT, host, SECRETS, '/redis', TLS)
        expect(text).to.match(/^port 0$/m)
        expect(text).to.match(/^tls-replication yes$/m)
        expect(text).to.match(/^tls-auth-clients yes$/m)
      }
    }
  })

  it('when Redis is configured, the first node is primary, evicts nothing, and refuses writes without a replica', () => {
    const [first, second] = (['data1', 'data2'] as const).map((host) =>
      redisConfiguration(LAYOUT, host, SECRETS, '/redis', TLS),
    )
    expect(first).not.to.include('replicaof')
    expect(second).to.include('replicaof 10.201.7.11 6379')
    for (const text of [first, second])
      expect(text)
        .to.include('maxmemory-policy noeviction')
        .and.include('min-replicas-to-write 1')
        .and.include('requirepass redis-password')
    expect(sentinelConfiguration(LAYOUT, 'data3', SECRETS, '/s', TLS)).to.include(
      'sentinel monitor clearbatch 10.201.7.11 6379 2',
    )
  })

  it('when processes connect to Redis, they know all Sentinels', () => {
    const address = redisAddressOf('REDIS_URL', redisUrlOf(LAYOUT, SECRETS))
    expect(address).to.deep.equal({
      sentinels: [11, 12, 13].map((last) => ({ host: `10.201.7.${last}`, port: 26_379 })),
      name: 'clearbatch',
      password: 'redis-password',
      isTls: true,
    })
  })

  it('when a process connects to Postgres, it uses the proxy of its own host', () => {
    expect(ownerUrlOf(LAYOUT, 'app2', SECRETS, TLS)).to.equal(
      'postgres://clearbatch:owner-password@10.201.7.22:5000/clearbatch?sslmode=verify-full&sslrootcert=%2Ftls%2Fca.pem',
    )
  })
})

describe('stack/cluster/network', () => {
  it('when scripts are written, sh can parse them, and what is created is removed', () => {
    const scripts = [
      creationScript(LAYOUT),
      removalScript(LAYOUT),
      janitorScript(LAYOUT, ['/pg/one', '/pg/two']),
      janitorScript(LOOPBACK, ['/pg/one']),
    ]
    for (const script of scripts) expect(spawnSync('/bin/sh', ['-n', '-c', script]).status).to.equal(0)
    for (const host of HOSTS)
      for (const script of scripts.slice(0, 2)) expect(script).to.include(namespaceOf(LAYOUT, host))
    expect(scripts[3]).not.to.include('netns')
  })
})

describe('stack/cluster/packages', () => {
  it('when programs are missing, one line names their Debian packages', () => {
    const all = findPrograms(() => true)
    expect(all).to.have.property('postgresDir', '/usr/lib/postgresql/18/bin')
    const missing = findPrograms((path) => !/etcd|postgres/.test(path)) as string[]
    expect(missing).to.deep.equal(['etcd-server', 'postgresql'])
    expect(missingPackages(missing)).to.equal(
      "a cluster needs Debian's packages etcd-server, postgresql: install them with `apt-get install etcd-server postgresql`",
    )
  })
})

describe('stack/cluster/patroni', () => {
  const node = (host: 'data1' | 'data2', role: PostgresNode['role'], state = 'running'): PostgresNode => ({
    host,
    role,
    state,
  })

  it('when nodes are listed, commits are answered only with a running primary and a synchronous standby', () => {
    expect(acceptsCommits([])).to.equal(false)
    expect(acceptsCommits([node('data1', 'primary'), node('data2', 'standby')])).to.equal(false)
    expect(
      acceptsCommits([node('data1', 'primary', 'stopped'), node('data2', 'synchronous standby')]),
    ).to.equal(false)
    const nodes = [node('data1', 'synchronous standby'), node('data2', 'primary')]
    expect(acceptsCommits(nodes)).to.equal(true)
    expect(primaryOf(nodes)).to.equal('data2')
  })
})

describe('stack/cluster/options', () => {
  it('when flags are read, the folder is absolute and demo traders run unless they are excluded', () => {
    const values = { dir: 'cluster', port: 8080, fresh: true, loopback: false, 'no-bots': true }
    expect(clusterOptionsOf(values)).to.include({ bots: false, fresh: true, port: 8080 })
    expect(clusterOptionsOf(values).dir).to.match(/^\//)
  })
})

describe('stack/cluster/certificates', () => {
  it('when a cluster starts, each host has a certificate of its addresses, and the key of the authority is gone', async function () {
    if (spawnSync('openssl', ['version']).error !== undefined)
      return skipBecause(this, 'openssl is not installed')
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-authority-'))
    after(() => rmSync(folder, { recursive: true }))
    await makeCertificates(folder, LAYOUT, async () => {})
    const read = (path: string): X509Certificate => new X509Certificate(readFileSync(path))
    for (const host of HOSTS) {
      const { ca, certificate, key } = certificateOf(folder, host)
      const own = read(certificate)
      expect(own.checkIP(addressOf(LAYOUT, host)), host).not.to.equal(undefined)
      expect(own.verify(read(ca).publicKey), host).to.equal(true)
      expect(own.checkPrivateKey(createPrivateKey(readFileSync(key))), host).to.equal(true)
      expect(statSync(key).mode & 0o077, host).to.equal(0)
    }
    // Clients reach Postgres by the proxy of an app host, which does not end TLS.
    const data = read(certificateOf(folder, 'data2').certificate)
    expect(data.checkIP(addressOf(LAYOUT, 'app1'))).not.to.equal(undefined)
    expect(readdirSync(join(folder, 'tls')).filter((name) => /^ca\.key|csr$|ext$/.test(name))).to.deep.equal(
      [],
    )
  })
})

describe('stack/cluster/state', () => {
  it('when a folder has the state of a cluster without TLS, the start refuses and names --fresh', () => {
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-state-'))
    after(() => rmSync(folder, { recursive: true }))
    expect(stateOf(folder, LAYOUT)).to.deep.equal(storedState(folder))
    const { layout, secrets } = stateOf(folder, LAYOUT)
    writeFileSync(join(folder, 'cluster.json'), JSON.stringify({ layout, secrets }))
    expect(() => storedState(folder))
      .to.throw('a cluster without TLS')
      .with.property('message')
      .that.includes('--fresh')
  })
})
