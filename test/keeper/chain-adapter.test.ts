import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Interface, Transaction, Wallet } from 'ethers'
import { after, describe, it } from 'mocha'
import type { Address } from '../../domain/units.ts'
import { createSigner, culpritOf } from '../../keeper/adapters/chain.ts'
import { type Config, readConfig } from '../../keeper/config.ts'
import { ConfigError } from '../../service/environment.ts'
import { plainKey } from '../../service/keys/key-source.ts'
import { IIsolatedTrader__factory } from '../../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'
import { IMarginBank__factory } from '../../typechain-types/factories/interfaces/IMarginBank__factory.ts'
import { adjustKey, laneKey } from './support/chain-fixture.ts'

const MAKER = `0x${'ab'.repeat(20)}`
const trader = new Interface(IIsolatedTrader__factory.abi)
const bank = new Interface(IMarginBank__factory.abi)

describe('culpritOf', () => {
  for (const [data, expected] of [
    [trader.encodeErrorResult('OrderDead', [MAKER, 7n]), { kind: 'order', maker: MAKER, salt: 7n }],
    [trader.encodeErrorResult('Overfill', [MAKER, 9n, 1n, 2n]), { kind: 'order', maker: MAKER, salt: 9n }],
    [trader.encodeErrorResult('MarginInsufficient', [MAKER, 1n, 0n]), { kind: 'account', maker: MAKER }],
    [bank.encodeErrorResult('FreeBalanceInsufficient', [MAKER, 1n, 2n]), { kind: 'account', maker: MAKER }],
    [trader.encodeErrorResult('AsOfStale', [1n, 2n]), { kind: 'late' }],
    [trader.encodeErrorResult('AsOfAhead', [1n, 2n]), { kind: 'early' }],
    [bank.encodeErrorResult('CreditTooLarge', [MAKER, 1n]), { kind: 'account', maker: MAKER }],
    [trader.encodeErrorResult('ActionOutOfOrder', [1n, 2n]), { kind: 'unnamed' }],
    ['0x', { kind: 'unnamed' }],
    ['0xdeadbeef', { kind: 'unnamed' }],
  ] as const) {
    it(`when the revert data is ${data.slice(0, 10)}, it returns a culprit of kind ${expected.kind}`, () => {
      expect(culpritOf(data)).to.deep.include(expected)
    })
  }
})

describe('createSigner', () => {
  const signer = createSigner(6343, plainKey(laneKey))
  const call = { to: MAKER as Address, data: '0x1234' as const, value: 5n, gas: 21_000n }

  it('when it signs a call, the transaction contains exactly that call, nonce and chain', async () => {
    const { raw, hash } = await signer.sign(call, 3, { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n })
    const parsed = Transaction.from(raw)
    expect(parsed.hash).to.equal(hash)
    expect(parsed.from?.toLowerCase()).to.equal(signer.address)
    expect([parsed.nonce, parsed.chainId, parsed.data, parsed.value]).to.deep.equal([3, 6343n, '0x1234', 5n])
  })

  it('when it replaces a transaction, only the fee differs', async () => {
    const { raw } = await signer.sign(call, 3, { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n })
    const replaced = await signer.replace(raw, { maxFeePerGas: 20n, maxPriorityFeePerGas: 2n })
    const [old, now] = [raw, replaced.raw].map((one) => Transaction.from(one))
    expect([now?.maxFeePerGas, now?.maxPriorityFeePerGas]).to.deep.equal([20n, 2n])
    for (const field of ['nonce', 'to', 'data', 'value', 'gasLimit', 'from'] as const)
      expect(now?.[field]).to.equal(old?.[field])
  })
})

const addressOf = (key: string): string => new Wallet(key).address.toLowerCase()
const addressesOf = ({ relayerKeys }: Config): ReadonlyMap<string, readonly string[]> =>
  new Map([...relayerKeys()].map(([lane, keys]) => [lane, keys.map(({ address }) => address)]))

describe('readConfig', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keeper-config-'))
  const keysFile = join(folder, 'keys.json')
  const [worker, publisher] = ['ab'.repeat(32), 'cd'.repeat(32)]
  writeFileSync(keysFile, JSON.stringify({ worker, publisher }), { mode: 0o600 })
  after(() => rmSync(folder, { recursive: true }))

  const env = {
    DATABASE_URL: 'postgres://x',
    RPC_URL: 'http://x',
    CHAIN_ID: '6343',
    ADDRESS_USDM: MAKER,
    ADDRESS_MARGIN_BANK: MAKER,
    RELAYER_KEYS: JSON.stringify({ m1: laneKey }),
    ENGINE_URL: '/run/engine',
    ENGINE_KEYS_FILE: keysFile,
  }

  it('when the required variables are set, it fills in defaults for the rest', () => {
    const config = readConfig(env)
    expect(config).to.deep.include({ chainId: 6343, pollMs: 50, redisUrl: null, killAt: null })
    expect([...addressesOf(config)]).to.deep.equal([['m1', [addressOf(laneKey)]]])
  })

  it('when a lane has a list of keys, it keeps their order', () => {
    const config = readConfig({ ...env, RELAYER_KEYS: JSON.stringify({ m1: [adjustKey, laneKey] }) })
    expect(addressesOf(config).get('m1')).to.deep.equal([addressOf(adjustKey), addressOf(laneKey)])
  })

  for (const [name, changes] of [
    ['DATABASE_URL', { DATABASE_URL: '' }],
    ['ENGINE_URL', { ENGINE_URL: '' }],
    ['ENGINE_KEYS_FILE', { ENGINE_KEYS_FILE: 'package.json' }],
    ['CHAIN_ID', { CHAIN_ID: 'mega' }],
    ['DRAIN_MS', { DRAIN_MS: '8000' }],
    ['DRAIN_MS', { SEND_TIMEOUT_MS: '10000' }],
    ['ADDRESS_USDM', { ADDRESS_USDM: '0x12' }],
    ['ADDRESS_MARGIN_BANK', { ADDRESS_MARGIN_BANK: '' }],
    ['RELAYER_KEYS', { RELAYER_KEYS: '' }],
    ['RELAYER_KEYS_FILE', { RELAYER_KEYS_FILE: '/nowhere/keys.json', RELAYER_KEYS: '' }],
    ['RELAYER_KEYS_FILE', { RELAYER_KEYS_FILE: 'package.json', RELAYER_KEYS: '' }],
    ['RELAYER_KEYS_FILE', { RELAYER_KEYS_FILE: '/nowhere/keys.json' }],
    ['RELAYER_KEYS', { RELAYER_KEYS: 'm1' }],
    ['RELAYER_KEYS', { RELAYER_KEYS: '{"m1":"0x12"}' }],
    ['RELAYER_KEYS', { RELAYER_KEYS: `{"admin":"${laneKey}"}` }],
    ['RELAYER_KEYS', { RELAYER_KEYS: '{"m1":[]}' }],
    ['RELAYER_KEYS', { RELAYER_KEYS: `{"m1":["${laneKey}","0x12"]}` }],
    ['RELAYER_KEYS', { RELAYER_KEYS: `{"m1":"${laneKey}","m2":["${laneKey}"]}` }],
    ['ORACLE_KEYS', { PRICES_FILE: 'package.json', ORACLE_KEYS: `{"one":["${laneKey}"]}` }],
  ] as const) {
    it(`when the environment has ${JSON.stringify(changes).replaceAll(laneKey, '…')}, it rejects ${name} without printing a key`, () => {
      expect(() => readConfig({ ...env, ...changes }))
        .to.throw(ConfigError)
        .with.property('message')
        .that.matches(new RegExp(`^${name} (?!.*${laneKey})`))
    })
  }
})
