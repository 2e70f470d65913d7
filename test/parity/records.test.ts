/** Settlement's checks of an order record: every rule at its bounds, every field in the digest, every kind of signer. */
import { expect } from 'chai'
import { concat, getAddress, getBytes, toBeHex, ZeroAddress } from 'ethers'
import { toHex } from '../../domain/hex.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { isAlwaysReduceOnly, isMarketType, ORDER_TYPES, type Order } from '../../domain/orders/order.ts'
import { domainSeparator, hashOrder } from '../../domain/orders/order-hash.ts'
import type { SettlementPart } from '../../domain/settlement/settlement.ts'
import { encodeSettleBatch, HEADER_BYTES } from '../../domain/settlement/settlement-codec.ts'
import type { FundingIndex, Price, Rate, Seconds, Steps, Ticks } from '../../domain/units.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import type { LibHarness, PartTermsStruct } from '../../typechain-types/mocks/LibHarness.ts'
import { refusalOf } from '../support/errors.ts'
import { chain, firstSigner, keccak, signOrder, wallet } from '../support/exchange.ts'
import { markets, perpetual } from '../support/markets.ts'
import { harness, NO_SLOT, termsStruct } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'
import { withBitFlipped } from '../support/refusals.ts'

const RUNS = 400
const CLEARING = 500
const MAX_LEVERAGE = 20
const AS_OF = 1_700_000_000_500
const maker = wallet('alice')
/** Maximum of quantity, fill and taker steps. */
const LARGEST = (1n << 48n) - 1n

// ---------------------------------------------------------------------- records

interface Fields {
  quantity: bigint
  fill: bigint
  salt: bigint
  /** Flag bits that no order sets: 2 and 3. */
  reservedFlags: bigint
  buy: boolean
  reduceOnly: boolean
  price: bigint
  trigger: bigint
  condition: bigint
  expiration: bigint
  taker: bigint
  leverage: bigint
  slot: bigint
  forced: boolean
}

const flag = (set: boolean, bit: bigint): bigint => (set ? 1n << bit : 0n)

/** The record, with optional fields where they differ from their default. */
function recordOf(fields: Fields, r = 0n, s = 0n, parity = 0n): string {
  const { salt, buy, reduceOnly, reservedFlags, quantity, fill, taker, trigger, condition, forced } = fields
  const flags = (salt << 4n) | flag(reduceOnly, 1n) | flag(buy, 0n) | reservedFlags
  const hasTrigger = trigger !== 0n || condition !== 0n
  const isAllTaker = taker === fill && taker !== 0n
  const hasTaker = taker !== 0n && !isAllTaker
  const meta =
    (fields.slot << 6n) |
    flag(hasTaker, 5n) |
    flag(isAllTaker, 4n) |
    (parity << 3n) |
    flag(forced, 2n) |
    flag(quantity !== fill, 1n) |
    flag(hasTrigger, 0n)
  return concat([
    maker.address,
    toBeHex(fill, 6),
    toBeHex((fields.leverage << 57n) | flags, 8),
    toBeHex(fields.price, 5),
    toBeHex(fields.expiration, 5),
    toBeHex(meta, 2),
    ...(forced ? [] : [toBeHex(r, 32), toBeHex(s, 32)]),
    ...(quantity !== fill ? [toBeHex(quantity, 6)] : []),
    ...(hasTrigger ? [toBeHex((condition << 40n) | trigger, 6)] : []),
    ...(hasTaker ? [toBeHex(taker, 6)] : []),
  ])
}

const PLAIN: Fields = {
  quantity: 10n,
  fill: 5n,
  salt: 7n,
  reservedFlags: 0n,
  buy: true,
  reduceOnly: false,
  price: 500n,
  trigger: 0n,
  condition: 0n,
  expiration: 0n,
  taker: 5n,
  leverage: 5n,
  slot: BigInt(NO_SLOT),
  forced: false,
}

type Random = (end: number) => number

/** Mostly valid, with every field now and then at either side of its bound. */
function drawFields(random: Random): Fields {
  const pick = <Item>(...items: readonly Item[]): Item => items[random(items.length)] as Item
  const seldom = <Item>(usual: Item, ...others: readonly Item[]): Item =>
    random(6) === 0 ? pick(...others) : usual
  const fill = seldom(BigInt(1 + random(1000)), 0n, 1n, LARGEST)
  const buy = random(2) === 0
  const price = buy ? pick(0n, 500n, 501n, (1n << 40n) - 1n) : pick(0n, 500n, 499n, 1n)
  const hasTrigger = random(3) === 0
  return {
    quantity: fill,
    fill,
    salt: pick(0n, 1n, BigInt(random(2 ** 31)), (1n << 53n) - 1n),
    reservedFlags: seldom(0n, 4n, 8n, 12n),
    buy,
    reduceOnly: random(2) === 0,
    price: seldom(price, 499n, 501n, 1n),
    trigger: hasTrigger ? seldom(1n, 0n, (1n << 40n) - 1n) : seldom(0n, 1n),
    condition: hasTrigger ? BigInt(1 + random(3)) : seldom(0n, 1n, 2n),
    expiration: pick(0n, 1_700_000_000n, 1_700_000_001n, (1n << 40n) - 1n),
    taker: pick(0n, fill, seldom(fill / 2n, fill === LARGEST ? fill : fill + 1n)),
    leverage: seldom(BigInt(1 + random(MAX_LEVERAGE)), 0n, 20n, 21n, 127n),
    slot: pick(0n, 1022n, 1023n),
    forced: false,
  }
}

// ---------------------------------------------------------------------- independent copy of the rules

const isTakeProfit = ({ buy, condition }: Fields): boolean => condition === (buy ? 2n : 1n)

/** In the order of the contract's checks: name and arguments of the error. */
const RULES: readonly (readonly [
  error: string,
  isBroken: (f: Fields) => boolean,
  args: (f: Fields) => unknown[],
])[] = [
  ['ReservedBits', ({ reservedFlags }) => reservedFlags !== 0n, () => []],
  ['ZeroFill', ({ fill }) => fill === 0n, () => []],
  ['TakerAboveFill', ({ fill, taker }) => taker > fill, ({ fill, taker }) => [fill, taker]],
  [
    'LimitViolated',
    ({ price, buy }) => price !== 0n && (buy ? price < CLEARING : price > CLEARING),
    ({ price }) => [price, CLEARING],
  ],
  [
    'LeverageOutOfRange',
    ({ leverage }) => leverage < 1n || leverage > MAX_LEVERAGE,
    ({ leverage }) => [MAX_LEVERAGE, leverage],
  ],
  [
    'TriggerEncoding',
    (f) =>
      (f.trigger !== 0n || f.condition !== 0n) &&
      (f.trigger === 0n || f.condition === 0n || f.condition === 3n || (isTakeProfit(f) && !f.reduceOnly)),
    ({ trigger, condition }) => [condition, trigger],
  ],
  [
    'OrderExpired',
    ({ expiration }) => expiration !== 0n && AS_OF > Number(expiration) * 1000,
    ({ expiration }) => [expiration, AS_OF],
  ],
]

/** The salt in an error: everything above the flag bits. */
const saltOf = ({ salt, reservedFlags }: Fields): bigint => ((salt << 4n) | reservedFlags) >> 4n

function expectedOf(fields: Fields): string | null {
  const broken = RULES.find(([, isBroken]) => isBroken(fields))
  if (broken === undefined) return null
  const [error, , args] = broken
  return `${error}(${[maker.address, saltOf(fields), ...args(fields)].join(',')})`
}

describe('parity: records', () => {
  let rules: LibHarness
  let terms: PartTermsStruct

  const termsOf = (spec: MarketSpec) =>
    termsStruct(rules, spec, {
      price: CLEARING as Ticks,
      oracle: 1n as Price,
      terms: { makerFee: 0n as Rate, takerFee: 0n as Rate, fundingIndex: 0n as FundingIndex },
      domain: toHex(domainSeparator(spec, keccak)),
    })

  before(async () => {
    rules = await harness()
    terms = { ...(await termsOf(perpetual)), asOf: AS_OF, maxLeverage: MAX_LEVERAGE }
  })

  it(`accepts ${RUNS} records or reverts with the expected error`, async () => {
    const random = randomOf(1)
    const seen = new Map<string, number>()
    for (let run = 0; run < RUNS; run++) {
      const fields = drawFields(random)
      const expected = expectedOf(fields)
      expect(
        await refusalOf(rules.requireValid(recordOf(fields), terms)),
        JSON.stringify(fields, big),
      ).to.equal(expected)
      const name = expected?.replace(/\(.*/, '') ?? 'valid'
      seen.set(name, (seen.get(name) ?? 0) + 1)
    }
    for (const [error] of [...RULES, ['valid'] as const]) expect(seen.get(error), error).to.be.greaterThan(4)
  }).timeout(60_000)

  it('checks each rule separately, on either side of its bound', async () => {
    const alone: readonly [Partial<Fields>, string | null][] = [
      [{}, null],
      ...[2n, 3n].map((bit): [Partial<Fields>, string] => [{ reservedFlags: 1n << bit }, 'ReservedBits']),
      [{ salt: (1n << 53n) - 1n }, null],
      [{ fill: 0n, taker: 0n }, 'ZeroFill'],
      [{ taker: 6n }, 'TakerAboveFill'],
      [{ price: 499n }, 'LimitViolated'],
      [{ price: 501n }, null],
      [{ price: 0n }, null],
      [{ price: 501n, buy: false }, 'LimitViolated'],
      [{ price: 499n, buy: false }, null],
      [{ price: 0n, buy: false }, null],
      [{ leverage: 0n }, 'LeverageOutOfRange'],
      [{ leverage: 1n }, null],
      [{ leverage: 20n }, null],
      [{ leverage: 21n }, 'LeverageOutOfRange'],
      [{ trigger: 1n }, 'TriggerEncoding'],
      [{ condition: 1n }, 'TriggerEncoding'],
      [{ trigger: 1n, condition: 1n }, null],
      [{ trigger: 1n, condition: 3n, reduceOnly: true }, 'TriggerEncoding'],
      [{ trigger: 1n, condition: 2n }, 'TriggerEncoding'],
      [{ trigger: 1n, condition: 2n, reduceOnly: true }, null],
      [{ trigger: 1n, condition: 1n, buy: false }, 'TriggerEncoding'],
      [{ trigger: 1n, condition: 1n, buy: false, reduceOnly: true }, null],
      [{ trigger: 1n, condition: 2n, buy: false }, null],
      [{ expiration: 1_700_000_000n }, 'OrderExpired'],
      [{ expiration: 1_700_000_001n }, null],
    ]
    for (const [change, error] of alone) {
      const fields = { ...PLAIN, ...change }
      const refusal = await refusalOf(rules.requireValid(recordOf(fields), terms))
      expect(refusal?.replace(/\(.*/, '') ?? null, JSON.stringify(change, big)).to.equal(error)
      expect(refusal).to.equal(expectedOf(fields))
    }
    // Valid in the millisecond in which it expires, with or without a trigger, and expired in the next.
    const plain = { ...PLAIN, expiration: 1_700_000_000n }
    for (const dying of [plain, { ...plain, trigger: 1n, condition: 1n }]) {
      const at = (asOf: number) => refusalOf(rules.requireValid(recordOf(dying), { ...terms, asOf }))
      expect(await at(1_700_000_000_000)).to.equal(null)
      expect(await at(1_700_000_000_001)).to.equal(
        `OrderExpired(${maker.address},7,1700000000,1700000000001)`,
      )
    }
  })

  it('accepts a forced record whose fixed fields have their values', async () => {
    const random = randomOf(2)
    // Account, fill, salt, side and taker bits identify what is closed.
    const free = new Set([...range(0, 208), ...range(215, 268), 271, 362, 363])
    for (const buy of [true, false]) {
      const fill = 2n ** 47n + 5n
      const fields: Fields = {
        ...PLAIN,
        ...{ fill, quantity: fill, buy, reduceOnly: true, price: 0n, taker: BigInt(random(2)) * fill },
        ...{ leverage: 0n, forced: true, salt: BigInt(random(2 ** 31)) },
      }
      // An optional field that is not expected is read from what follows.
      const record = getBytes(concat([recordOf(fields), '0x010101010101']))
      expect(await refusalOf(rules.requireForced(record))).to.equal(null)
      for (let bit = 0; bit < 8 * 46; bit++) {
        const refusal = await refusalOf(rules.requireForced(withBitFlipped(record, bit)))
        expect(refusal === null, `bit ${bit}: ${refusal}`).to.equal(free.has(bit))
        if (refusal !== null) expect(refusal).to.match(/^ForcedEncoding\(/)
      }
      // A trigger that is present with its default is no other record.
      const spelledOut = withBitFlipped(getBytes(concat([recordOf(fields), toBeHex(0, 6)])), 8 * 46 - 1)
      expect(await refusalOf(rules.requireForced(spelledOut))).to.equal(null)
      const refused = `ForcedEncoding(${maker.address},${fields.salt})`
      for (const change of [
        { fill: 0n, quantity: 0n, taker: 0n },
        { quantity: fill - 1n },
        { taker: fill + 1n },
        { trigger: 1n },
        { condition: 1n },
      ])
        expect(await refusalOf(rules.requireForced(recordOf({ ...fields, ...change })))).to.equal(refused)
      expect(await refusalOf(rules.requireForced(recordOf({ ...fields, taker: 1n })))).to.equal(null)
    }
  }).timeout(60_000)

  // -------------------------------------------------------------------- signatures

  it('recovers digest and signer of 150 orders', async () => {
    const random = randomOf(3)
    for (let run = 0; run < 150; run++) {
      const spec = markets[random(3)] as MarketSpec
      const signer = wallet(`signer ${random(5)}`)
      const order = drawOrder(spec, random)
      const record = recordFrom(spec, signOrder(order, spec, signer))
      const [hash, found] = await rules.signerOf(record, await termsOf(spec))
      expect([hash, found]).to.deep.equal([hashOrder(order, spec, keccak), signer.address])
    }
  }).timeout(60_000)

  it('when r or s is invalid or s is high, it recovers the zero address', async () => {
    const digest = keccak(new Uint8Array(32))
    const most = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
    const order = 2n * most + 1n
    const { r, s, yParity } = maker.signingKey.sign(keccak(personal(digest)))
    const recover = (parity: number, at: string, by: bigint) =>
      rules.recover(digest, parity, at, toBeHex(by, 32))
    expect(await recover(yParity, r, BigInt(s))).to.equal(maker.address)
    expect(await recover(1 - yParity, r, order - BigInt(s))).to.equal(ZeroAddress)
    expect(await recover(yParity, r, most)).to.not.equal(ZeroAddress)
    expect(await recover(yParity, r, most + 1n)).to.equal(ZeroAddress)
    expect(await recover(yParity, r, 0n)).to.equal(ZeroAddress)
    expect(await recover(2, r, BigInt(s))).to.equal(ZeroAddress)
    expect(await recover(yParity, toBeHex(0n, 32), BigInt(s))).to.equal(ZeroAddress)
  })

  it('accepts the maker and the maker’s session keys with the order permission', async () => {
    const signer = await firstSigner(await chain())
    const owner = getAddress(await signer.getAddress())
    const keys = await new AccountManager__factory(signer).deploy(maker.address)
    const [mayOrder, mayMargin, unauthorized] = ['orders', 'margin', 'unauthorized'].map(wallet)
    await keys.registerSessionKey(mayOrder!.address, 1)
    await keys.registerSessionKey(mayMargin!.address, 2)
    const { networkHelpers } = await chain()
    const asOf = (await networkHelpers.time.latest()) * 1000
    const refusal = (by: string, when = asOf) => refusalOf(rules.requireSigner(keys, owner, 9, by, when))
    expect(await refusal(owner)).to.equal(null)
    expect(await refusal(mayOrder!.address)).to.equal(null)
    expect(await refusal(ZeroAddress)).to.equal(`SignatureInvalid(${owner},9)`)
    for (const { address } of [mayMargin!, unauthorized!]) {
      expect(await refusal(address)).to.equal(`SignerUnauthorized(${owner},9,${address})`)
    }
    const MONTH = 31 * 86_400_000
    expect(await refusal(mayOrder!.address, asOf + MONTH)).to.match(/^SignerUnauthorized/)
  })
})

// ---------------------------------------------------------------------- drawing orders

function drawOrder(spec: MarketSpec, random: Random): Order {
  const type = ORDER_TYPES[random(ORDER_TYPES.length)] as Order['type']
  return {
    marketId: spec.marketId,
    maker: wallet(`maker ${random(5)}`).address.toLowerCase() as Order['maker'],
    side: random(2) === 0 ? 'LONG' : 'SHORT',
    type,
    price: (isMarketType(type) ? 0 : 1 + random(2 ** 31) * 500) as Ticks,
    quantity: (1 + random(2 ** 31) * 100_000) as Steps,
    trigger: (type === 'MARKET' || type === 'LIMIT' ? 0 : 1 + random(2 ** 31) * 500) as Ticks,
    leverage: 1 + random(127),
    reduceOnly: isAlwaysReduceOnly(type) || random(2) === 0,
    expiration: (random(2) === 0 ? 0 : random(2 ** 31) * 256) as Seconds,
    salt: BigInt(random(2 ** 31)) * BigInt(random(2 ** 21)),
  }
}

/** The order's record, taken from a part that contains only this order. */
function recordFrom(spec: MarketSpec, order: ReturnType<typeof signOrder>): Uint8Array {
  const part: SettlementPart = {
    ...{ marketId: spec.marketId, actionId: 1, batchId: 1, part: 1, parts: 1, asOf: 0 as never },
    ...{ price: 1 as Ticks, makerFee: 0n as Rate, takerFee: 0n as Rate },
    oracle: { price: 1n as Price, observedAt: 0 as never, signatures: '0x' },
    fills: [{ order, fill: 1 as Steps, taker: 1 as Steps, partialSlot: null }],
  }
  return encodeSettleBatch(part, spec).slice(HEADER_BYTES)
}

const PREFIX = '\x19Ethereum Signed Message:\n32'
const personal = (digest: Uint8Array): Uint8Array =>
  new Uint8Array([...new TextEncoder().encode(PREFIX), ...digest])
const range = (from: number, end: number): number[] =>
  Array.from({ length: end - from }, (_, index) => from + index)
const big = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}` : value)
