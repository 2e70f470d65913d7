/** The environment is checked once, and an invalid variable is rejected by name. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { readConfig } from '../../indexer/config.ts'
import { ConfigError } from '../../service/environment.ts'

const folder = mkdtempSync(join(tmpdir(), 'indexer-config-'))
const keysFile = join(folder, 'keys.json')
writeFileSync(keysFile, JSON.stringify({ ingest: 'ab'.repeat(32) }), { mode: 0o600 })
after(() => rmSync(folder, { recursive: true }))

const env = {
  DATABASE_URL: 'postgres://localhost/x',
  RPC_URL: 'http://localhost:8545',
  CHAIN_ID: '6343',
  ADDRESS_MARGIN_BANK: `0x${'Ab'.repeat(20)}`,
  ADDRESS_ACCOUNT_MANAGER: `0x${'cd'.repeat(20)}`,
  ADDRESS_FORWARDER: `0x${'ce'.repeat(20)}`,
  ENGINE_URL: '/run/engine',
  ENGINE_KEYS_FILE: keysFile,
}

describe('readConfig', () => {
  it('when the required variables are set, all other variables have their defaults', () => {
    const config = readConfig(env)
    expect(config.pollMs).to.equal(100)
    expect(config.bank).to.equal(`0x${'ab'.repeat(20)}`)
    expect(config.rpcWsUrl).to.equal(null)
    expect(config.killAt).to.equal(null)
    expect(config.engine.members).to.deep.equal(['/run/engine'])
  })

  for (const name of Object.keys(env)) {
    it(`when ${name} is not set, it throws an error that names it`, () => {
      expect(() => readConfig({ ...env, [name]: '' })).to.throw(ConfigError, `${name} is not set`)
    })
  }

  for (const [name, value] of [
    ['DATABASE_URL', 'mysql://x'],
    ['RPC_URL', 'localhost:8545'],
    ['RPC_WS_URL', 'http://localhost'],
    ['CHAIN_ID', '0'],
    ['CHAIN_ID', '1.5'],
    ['CHAIN_RANGE', '-1'],
    ['ADDRESS_MARGIN_BANK', '0x12'],
    ['ENGINE_URL', 'nowhere'],
    ['ENGINE_KEYS_FILE', '/nowhere'],
  ] as const) {
    it(`when ${name} is ${value}, it throws an error that names it`, () => {
      expect(() => readConfig({ ...env, [name]: value })).to.throw(ConfigError, name)
    })
  }
})
