/** The trust boundary of the check: it refuses a deployment of which anything was tampered with, whatever events and getters say. */
import { expect } from 'chai'
import { AbiCoder, concat, hexlify, keccak256, toBeHex } from 'ethers'
import fc from 'fast-check'
import { artifacts } from 'hardhat'
import { compiledFrom } from '../../../ignition/build.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { chain } from '../../support/exchange.ts'
import {
  type Connection,
  CREATED,
  deployTampered,
  type Exchange,
  forgedCreation,
  type Write,
  wrongIn,
} from '../support/tampering.ts'

const compiled = compiledFrom(artifacts)
/** An address without code, where tests put the creation code that a forgery delegates to. */
const GENUINE = '0x00000000000000000000000000000000c0de0001'
const THIEF = '0x00000000000000000000000000000000000071ef'
const MARKET = CREATED.length - 1

const contract = fc.nat(CREATED.length - 1)
const word = fc.bigInt(1n, 2n ** 256n - 1n)
/** Entries of mappings by account or number, and slots beyond those of variables. */
const write: fc.Arbitrary<Write> = fc.tuple(
  fc.oneof(
    fc
      .tuple(fc.constantFrom(BigInt(THIEF), BigInt(THIEF) + 1n), fc.nat(30))
      .map(([key, slot]) => mappingSlot(key, BigInt(slot))),
    fc.bigInt(1_000n, 2n ** 256n - 1n),
  ),
  word,
)

function mappingSlot(key: bigint, slot: bigint): bigint {
  return BigInt(keccak256(AbiCoder.defaultAbiCoder().encode(['uint256', 'uint256'], [key, slot])))
}

describe('the check of a tampered deployment', function () {
  this.timeout(600_000)
  let connection: Connection
  let exchange: Exchange
  const addressAt = ({ deployment }: Exchange, index: number): string =>
    deployment.contracts[CREATED[index] ?? ''] ?? deployment.markets.get(1) ?? ''
  const check = async (of: Exchange): Promise<string[]> =>
    (await wrongIn(connection, compiled, of)).map(({ what, found }) => `${what}: ${found}`)

  /** Creation code that delegates to the genuine creation code. */
  const delegating = (writes: readonly Write[]) => async (genuine: string) => {
    await connection.provider.request({ method: 'hardhat_setCode', params: [GENUINE, genuine] })
    return forgedCreation(GENUINE, writes)
  }

  before(async () => {
    connection = await chain()
    exchange = await deployTampered(connection)
  })

  it('when nothing was tampered with, nothing is wrong', async () => {
    expect(await check(exchange)).to.deep.equal([])
  })

  it('when a constructor planted a balance that no event shows, only its creation is wrong', async () => {
    const bank = CREATED.indexOf('MarginBank')
    const writes = Array.from(
      { length: 20 },
      (_, slot): Write => [mappingSlot(BigInt(THIEF), BigInt(slot)), 5n],
    )
    const tampered = await deployTampered(connection, { contract: bank, forge: delegating(writes) })
    const address = addressAt(tampered, bank)
    const planted = await MarginBank__factory.connect(address, connection.ethers.provider).account(THIEF)
    expect(planted.free).to.equal(5n)
    expect(await check(tampered)).to.deep.equal([
      `creation of MarginBank ${address}: other creation code from byte 0 on`,
    ])
  })

  it('when a constructor wrote any storage, or runs through any other code, only its creation is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(contract, fc.array(write, { maxLength: 4 }), async (index, writes) => {
        const tampered = await deployTampered(connection, { contract: index, forge: delegating(writes) })
        const address = addressAt(tampered, index)
        expect(await check(tampered)).to.deep.equal([
          `creation of ${CREATED[index]} ${address}: other creation code from byte 0 on`,
        ])
      }),
      { numRuns: 12 },
    )
  })

  it('when bytes follow the constructor arguments, the creation is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(contract, fc.uint8Array({ minLength: 1, maxLength: 40 }), async (index, bytes) => {
        const forge = async (genuine: string) => concat([genuine, hexlify(bytes)])
        const tampered = await deployTampered(connection, { contract: index, forge })
        expect(await check(tampered)).to.deep.equal([
          `creation of ${CREATED[index]} ${addressAt(tampered, index)}: further bytes in the constructor arguments`,
        ])
      }),
      { numRuns: 3 },
    )
  })

  const ARGUMENTS = {
    AccountManager: 'keys',
    SignedPriceOracle: 'priceOracle',
    Forwarder: 'forwarder',
    MarketExtension: 'code',
  } as const
  for (const [name, argument] of Object.entries(ARGUMENTS))
    it(`when the market refers to another ${name} with the same code, its code and its creation are wrong`, async () => {
      const index = CREATED.indexOf(name)
      const digits = (address = '') => address.slice(2).toLowerCase()
      const theirs = digits(addressAt(exchange, index))
      const forge = async (genuine: string, created: readonly string[]) =>
        genuine.replace(digits(created[index]), theirs)
      const wrong = await check(await deployTampered(connection, { contract: MARKET, forge }))
      expect(
        wrong.some((line) => line.includes(`: constructor argument ${argument.toLowerCase()} `)),
        wrong.join('\n'),
      ).to.equal(true)
      expect(
        wrong.some((line) => /immutable \w+\._(ACCOUNT_MANAGER|ORACLE|FORWARDER|EXTENSION): /.test(line)),
      ).to.equal(true)
    })

  it('when any immutable has any other value, the check names it', async () => {
    const withImmutables = await Promise.all(
      CREATED.map(async (name) => Object.entries((await compiled(name)).immutables)),
    )
    const places = withImmutables.flatMap((immutables, index) =>
      immutables.flatMap(([name, spans]) => spans.map((span) => ({ index, name, span }))),
    )
    const other = fc.oneof(word, fc.constantFrom(...exchange.hashes.keys()).map(BigInt))
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), other, async ({ index, name, span }, value) => {
        const address = addressAt(exchange, index)
        const code = await connection.ethers.provider.getCode(address)
        const bytes = toBeHex(BigInt.asUintN(span.length * 8, value), span.length).slice(2)
        const changed = `${code.slice(0, 2 + span.start * 2)}${bytes}${code.slice(2 + (span.start + span.length) * 2)}`
        fc.pre(changed !== code)
        const wrong = await withCode(address, changed, () => check(exchange))
        const what = `${CREATED[index]} ${address}: immutable ${name}: `
        expect(
          wrong.filter((line) => line.startsWith(what)),
          wrong.join('\n'),
        ).to.have.length(1)
      }),
      { numRuns: 24 },
    )
  })

  it('when any other byte of code differs, the check names the contract', async () => {
    await fc.assert(
      fc.asyncProperty(contract, fc.nat(), fc.integer({ min: 1, max: 255 }), async (index, at, mask) => {
        const address = addressAt(exchange, index)
        const code = Buffer.from((await connection.ethers.provider.getCode(address)).slice(2), 'hex')
        const offset = at % code.length
        code[offset] = (code[offset] ?? 0) ^ mask
        const wrong = await withCode(address, hexlify(code), () => check(exchange))
        expect(
          wrong.some((line) => line.includes(`${CREATED[index]} ${address}`)),
          wrong.join('\n'),
        ).to.equal(true)
      }),
      { numRuns: 10 },
    )
  })

  it('when the journal names no transaction, or any other one, the check says why the creation is unknown', async () => {
    const every = [...exchange.hashes.values()]
    const call = (await connection.ethers.provider.getBlock('latest'))?.transactions[0] ?? ''
    const named = fc.option(fc.constantFrom(...every, call, `0x${'ab'.repeat(32)}`), { nil: undefined })
    await fc.assert(
      fc.asyncProperty(contract, named, async (index, hash) => {
        const address = addressAt(exchange, index).toLowerCase()
        fc.pre(hash !== exchange.hashes.get(address))
        const hashes = new Map(exchange.hashes)
        if (hash === undefined) hashes.delete(address)
        else hashes.set(address, hash)
        const wrong = await check({ ...exchange, hashes })
        const line = wrong.find((each) =>
          each.toLowerCase().startsWith(`creation of ${CREATED[index]} ${address}`.toLowerCase()),
        )
        expect(line, wrong.join('\n')).to.match(/: unknown: .*(journal|node does not return transaction)/)
      }),
      { numRuns: 10 },
    )
  })

  async function withCode<Result>(
    address: string,
    code: string,
    act: () => Promise<Result>,
  ): Promise<Result> {
    const genuine = await connection.ethers.provider.getCode(address)
    await connection.provider.request({ method: 'hardhat_setCode', params: [address, code] })
    try {
      return await act()
    } finally {
      await connection.provider.request({ method: 'hardhat_setCode', params: [address, genuine] })
    }
  }
})
