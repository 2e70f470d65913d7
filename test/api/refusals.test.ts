import { expect } from 'chai'
import { SigningKey, Wallet } from 'ethers'
import { after, afterEach, before, describe, it } from 'mocha'
import type { MarketMode } from '../../domain/market.ts'
import { binary, e18, future, perpetual } from '../support/markets.ts'
import {
  createUser,
  type Draft,
  type Forgery,
  flagsOf,
  ORDER_TYPES,
  setOracle,
  signedBody,
  startWorld,
  type User,
  type World,
} from './support/world.ts'

interface Refusal {
  readonly when: string
  readonly draft?: Draft
  readonly forgery?: Forgery
  /** Laid over the body after signing; undefined takes a field away. */
  readonly body?: Record<string, unknown>
  readonly status?: number
  readonly code: string
  readonly field?: string
  readonly nearest?: unknown
  readonly hint?: RegExp
}

const oldStruct = { Order: ORDER_TYPES.Order.filter(({ name }) => name !== 'triggerCondition') }
const digestOnly = (digest: string, wallet: Wallet): string =>
  `${wallet.signingKey.sign(digest).serialized}01`
const asPersonal = (digest: string, wallet: Wallet): string =>
  wallet.signMessageSync(Buffer.from(digest.slice(2), 'hex'))
/** The same signature with s mirrored at the group order: valid, but the form that is refused. */
const highS = (digest: string, wallet: Wallet): string => {
  const signature = asPersonal(digest, wallet)
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}01`
}
const stranger = new Wallet(new SigningKey(`0x${'42'.repeat(32)}`))

const FORM: readonly Refusal[] = [
  {
    when: 'the market is unknown',
    body: { market_id: 99 },
    status: 404,
    code: 'MARKET_NOT_FOUND',
    field: 'market_id',
  },
  { when: 'a field is missing', body: { side: undefined }, code: 'MISSING_FIELD', field: 'side' },
  { when: 'a field is unknown', body: { usd_amount: 5 }, code: 'UNKNOWN_FIELD', field: 'usd_amount' },
  {
    when: 'a margin fraction is sent',
    body: { margin_fraction: 1 },
    code: 'UNKNOWN_FIELD',
    field: 'margin_fraction',
  },
  { when: 'the side is no side', body: { side: 'BUY' }, code: 'INVALID_FIELD', field: 'side' },
  { when: 'a price is a word', body: { price: 'cheap' }, code: 'INVALID_FIELD', field: 'price' },
  { when: 'a price is negative', body: { price: -1 }, code: 'INVALID_FIELD', field: 'price' },
  { when: 'a price is null', body: { price: null }, code: 'INVALID_FIELD', field: 'price' },
  {
    when: 'reduce_only is a string',
    body: { reduce_only: 'true' },
    code: 'INVALID_FIELD',
    field: 'reduce_only',
  },
  { when: 'the salt is a number', body: { salt: 5 }, code: 'INVALID_FIELD', field: 'salt' },
  {
    when: 'the order type is unknown',
    body: { order_type: 'FOK' },
    code: 'ORDER_TYPE_UNKNOWN',
    field: 'order_type',
  },
  {
    when: 'the type is conditional',
    body: { order_type: 'STOP_MARKET' },
    code: 'ORDER_TYPE_UNAVAILABLE',
    field: 'order_type',
  },
  {
    when: 'signature_type is another',
    body: { signature_type: 2 },
    code: 'SIGNATURE_TYPE',
    field: 'signature_type',
  },
  { when: 'a limit order has no price', body: { price: undefined }, code: 'PRICE_REQUIRED', field: 'price' },
  {
    when: 'a market order has a price',
    draft: { type: 'MARKET', price: '100' },
    code: 'PRICE_NOT_ALLOWED',
    field: 'price',
  },
  {
    when: 'there is a trigger',
    body: { trigger_price: 100 },
    code: 'TRIGGER_NOT_ALLOWED',
    field: 'trigger_price',
  },
  {
    when: 'the price is off the tick',
    draft: { price: '100.04' },
    code: 'TICK_SIZE',
    field: 'price',
    nearest: '100',
  },
  {
    when: 'the quantity is off the step',
    draft: { quantity: '1.0005' },
    code: 'STEP_SIZE',
    field: 'quantity',
    nearest: '1',
  },
  {
    when: 'there is no quantity',
    body: { quantity: undefined },
    code: 'QUANTITY_REQUIRED',
    field: 'quantity',
  },
  {
    when: 'the quantities differ',
    body: { quantity_e18_raw: '5' },
    code: 'QUANTITY_MISMATCH',
    field: 'quantity_e18_raw',
  },
  {
    when: 'the quantity is below the minimum',
    draft: { quantity: '0.009' },
    code: 'MIN_ORDER_SIZE',
    field: 'quantity',
    nearest: '0.01',
  },
  {
    when: 'the quantity is above the maximum',
    draft: { quantity: '10000.001' },
    code: 'MAX_ORDER_SIZE',
    field: 'quantity',
    nearest: '10000',
  },
  {
    when: 'the price is below the minimum',
    draft: { price: '0.9' },
    code: 'MIN_ORDER_PRICE',
    field: 'price',
    nearest: '1',
  },
  {
    when: 'a binary price is 1',
    draft: { market: binary, price: '1' },
    code: 'MAX_ORDER_PRICE',
    field: 'price',
    nearest: '0.999',
  },
  {
    when: 'the leverage is above the cap',
    draft: { leverage: 21 },
    code: 'LEVERAGE_CAP',
    field: 'leverage',
    nearest: '20',
  },
  { when: 'the leverage is 0', body: { leverage: 0 }, code: 'INVALID_FIELD', field: 'leverage' },
  { when: 'the leverage is a fraction', body: { leverage: 1.5 }, code: 'INVALID_FIELD', field: 'leverage' },
  { when: 'the salt is 2^53', body: { salt: String(2n ** 53n) }, code: 'SALT_RANGE', field: 'salt' },
  {
    when: 'the expiration is in milliseconds',
    body: { expiration_seconds: 1_800_000_000_000 },
    code: 'EXPIRATION_RANGE',
    field: 'expiration_seconds',
  },
  {
    when: 'the expiration has passed',
    draft: { expiration: 1_500_000_000 },
    code: 'ORDER_EXPIRED',
    field: 'expiration_seconds',
  },
]

const SIGNATURES: readonly Refusal[] = [
  { when: 'it is no hex', body: { signature: 'signed' }, code: 'SIGNATURE_FORMAT', hint: /r, s and v/ },
  {
    when: 'the suffix is missing',
    forgery: { sign: asPersonal },
    code: 'SIGNATURE_FORMAT',
    hint: /right but lacks its suffix/,
  },
  {
    when: 'the suffix is another',
    forgery: { sign: (d, w) => `${asPersonal(d, w)}02` },
    code: 'SIGNATURE_SUFFIX',
    hint: /01/,
  },
  {
    when: 'v is 0 or 1',
    forgery: { sign: (d, w) => `${asPersonal(d, w).slice(0, 130)}0001` },
    code: 'SIGNATURE_V',
    hint: /27 or 28/,
  },
  { when: 's is high', forgery: { sign: highS }, code: 'SIGNATURE_HIGH_S', hint: /lower s/ },
  {
    when: 'r fits no key',
    forgery: { sign: () => `0x${'00'.repeat(31)}05${'00'.repeat(31)}011b01` },
    code: 'SIGNATURE_UNRECOVERABLE',
  },
  {
    when: 'the typed-data hash was signed',
    forgery: { sign: digestOnly },
    code: 'SIGNATURE_MISMATCH',
    hint: /sign its 32 bytes as a personal message/,
  },
  {
    when: 'the hash was signed as text',
    forgery: { sign: (d, w) => `${w.signMessageSync(d)}01` },
    code: 'SIGNATURE_MISMATCH',
    hint: /hex text/,
  },
  {
    when: 'the chain id is another',
    forgery: { domain: { chainId: 4326 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /chain id 4326/,
  },
  {
    when: 'the market is another',
    forgery: { domain: { verifyingContract: future.trader } },
    code: 'SIGNATURE_MISMATCH',
    hint: /contract of market 2/,
  },
  {
    when: 'the version is 1.0',
    forgery: { domain: { version: '1.0' } },
    code: 'SIGNATURE_MISMATCH',
    hint: /2\.0, it was signed with 1\.0/,
  },
  {
    when: 'the struct is old',
    forgery: { types: oldStruct },
    code: 'SIGNATURE_MISMATCH',
    hint: /triggerCondition/,
  },
  {
    when: 'struct and version are old',
    forgery: { types: oldStruct, domain: { version: '1.0' } },
    code: 'SIGNATURE_MISMATCH',
    hint: /version 1/,
  },
  {
    when: 'the side is the other',
    body: { side: 'SHORT' },
    code: 'SIGNATURE_MISMATCH',
    hint: /side is the other/,
  },
  {
    when: 'reduce_only was not signed',
    body: { reduce_only: true },
    code: 'SIGNATURE_MISMATCH',
    hint: /reduce-only bit/,
  },
  {
    when: 'the salt is one off',
    draft: { salt: 50_000n },
    body: { salt: '50001' },
    code: 'SIGNATURE_MISMATCH',
    hint: /salt is one lower/,
  },
  {
    when: 'the salt is not shifted',
    draft: { salt: 9_000_000n },
    forgery: { message: { flags: `0x${(9_000_000n | 1n).toString(16).padStart(16, '0')}` } },
    code: 'SIGNATURE_MISMATCH',
    hint: /shifted left/,
  },
  {
    when: 'the side bit is missing',
    draft: { salt: 9_000_001n },
    forgery: { message: { flags: flagsOf(9_000_001n, 'SHORT', false) } },
    code: 'SIGNATURE_MISMATCH',
    hint: /side is the other/,
  },
  {
    when: 'the leverage is unscaled',
    draft: { leverage: 5 },
    forgery: { message: { leverage: 5n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /leverage must be times 1e18/,
  },
  {
    when: 'the quantity is unscaled',
    forgery: { message: { quantity: 1n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /quantity must be times 1e18/,
  },
  {
    when: 'the expiration is in milliseconds',
    draft: { expiration: 4_000_000_000 },
    forgery: { message: { expiration: 4_000_000_000_000n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /milliseconds/,
  },
  {
    when: 'the trigger condition is 1',
    forgery: { message: { triggerCondition: 1 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /triggerCondition must be 0/,
  },
  {
    when: 'the price is another',
    body: { price: '101' },
    code: 'SIGNATURE_MISMATCH',
    hint: /No usual mistake/,
  },
  {
    when: 'another key signed',
    forgery: { sign: (d) => `${asPersonal(d, stranger)}01` },
    code: 'SIGNATURE_MISMATCH',
    hint: /another key/,
  },
]

describe('POST /v0/orders refuses', () => {
  let world: World
  let alice: User

  before(async () => {
    world = await startWorld()
    alice = await createUser(world.db, 'alice', '1000')
  })
  after(() => world.stop())

  async function refuse({
    draft,
    forgery,
    body: changes,
    status = 400,
    code,
    field,
    nearest,
    hint,
  }: Refusal) {
    const before = await world.traces()
    const { body } = signedBody(alice, draft, forgery)
    const answer = await world.send(alice, 'POST', '/v0/orders', { ...body, ...changes })
    expect(answer.body.details, JSON.stringify(answer.body)).to.include({ code, outcome: 'not_placed' })
    expect(answer.status).to.equal(status)
    expect(answer.body.message).to.be.a('string').and.not.equal('')
    expect(answer.body.details.request_id).to.equal(answer.headers['x-request-id'])
    if (field !== undefined) expect(answer.body.details.field).to.equal(field)
    if (nearest !== undefined) expect(answer.body.details.nearest_valid).to.deep.equal(nearest)
    if (hint !== undefined) expect(answer.body.details.hint).to.match(hint)
    expect(await world.traces(), 'nothing is stored, nothing is reserved').to.deep.equal(before)
    return answer
  }

  describe('what the order says by itself:', () => {
    for (const refusal of FORM)
      it(`when ${refusal.when}: ${refusal.code}`, () => refuse(refusal).then(() => {}))
  })

  describe('a signature, with a hint:', () => {
    for (const refusal of SIGNATURES) {
      it(`when ${refusal.when}: ${refusal.code}`, () =>
        refuse({ ...refusal, field: 'signature' }).then(() => {}))
    }

    it('and says digest, domain and signers', async () => {
      const forgery = { sign: (digest: string) => `${asPersonal(digest, stranger)}01` }
      const { hash } = signedBody(alice, { salt: 31_337n }, forgery)
      const { body } = await refuse({
        when: '',
        draft: { salt: 31_337n },
        forgery,
        code: 'SIGNATURE_MISMATCH',
      })
      expect(body.details).to.deep.include({
        digest: hash,
        domain: {
          name: 'IsolatedTrader',
          version: '2.0',
          chainId: 6343,
          verifyingContract: perpetual.trader,
        },
        recovered_signer: stranger.address.toLowerCase(),
        expected_signer: alice.address,
      })
    })
  })

  describe('what does not fit the market or the account:', () => {
    const restore: (() => Promise<unknown>)[] = []
    afterEach(async () => {
      for (const undo of restore.splice(0)) await undo()
    })

    it('a buy above the band, with the nearest price inside; below it is accepted', async () => {
      await refuse({
        when: '',
        draft: { price: '105.1' },
        code: 'PRICE_BAND',
        field: 'price',
        nearest: '105',
      })
      await refuse({
        when: '',
        draft: { price: '94.9', side: 'SHORT' },
        code: 'PRICE_BAND',
        field: 'price',
        nearest: '95',
      })
      const passive = await world.place(alice, { price: '50', quantity: '0.01' })
      expect(passive.status).to.equal(200)
    })

    it('an order that the balance does not cover, with the quantity that it would', async () => {
      const { body } = await refuse({
        when: '',
        draft: { quantity: '20' },
        code: 'INSUFFICIENT_MARGIN',
        field: 'quantity',
      })
      const largest = await world.place(alice, { quantity: body.details.nearest_valid })
      expect(largest.status, JSON.stringify(largest.body)).to.equal(200)
      await world.cancel(alice, largest.body.order.order_hash)
    })

    it('a reduce-only order without a position', () =>
      refuse({
        when: '',
        draft: { reduceOnly: true },
        code: 'REDUCE_ONLY_NO_POSITION',
        field: 'reduce_only',
      }).then(() => {}))

    it('an opening order on a position below its requirement', async () => {
      const bob = await createUser(world.db, 'bob')
      const matched = {
        matched_entry_notional: e18('120'),
        matched_folded_margin: e18('21'),
        matched_leverage: 20,
      }
      await world.db
        .insertInto('positions')
        .values({ user_id: bob.userId, market_id: 1, matched_size: 1000, ...matched })
        .execute()
      const { status, body } = await world.place(bob, { quantity: '0.1' })
      expect([status, body.details.code]).to.deep.equal([400, 'MARGIN_REQUIREMENT'])
    })

    it('a position beyond what its slot holds', async () => {
      const carol = await createUser(world.db, 'carol', '4000000000')
      const matched = { matched_folded_margin: e18('2400000000'), matched_leverage: 1 }
      await world.db
        .insertInto('positions')
        .values({ user_id: carol.userId, market_id: 1, matched_size: 2 ** 34, ...matched })
        .execute()
      const { status, body } = await world.place(carol, { quantity: '1' })
      expect([status, body.details.code], JSON.stringify(body)).to.deep.equal([400, 'POSITION_LIMIT'])
    })

    it('the 501st open order in one market, and takes it in another', async () => {
      const dave = await createUser(world.db, 'dave')
      const bodies = Array.from({ length: 500 }, () => signedBody(dave, { quantity: '0.01' }).body)
      const placed = await Promise.all(bodies.map((body) => world.send(dave, 'POST', '/v0/orders', body)))
      expect(placed.filter(({ status }) => status === 200)).to.have.length(500)
      const one = await world.place(dave, { quantity: '0.01' })
      expect([one.status, one.body.details.code]).to.deep.equal([400, 'OPEN_ORDER_LIMIT'])
      expect((await world.place(dave, { market: future, price: '50', quantity: '0.1' })).status).to.equal(200)
      await world.cancel(dave, placed[7]?.body.order.order_hash)
      expect((await world.place(dave, { quantity: '0.01' })).status).to.equal(200)
    })

    const setMode = async (mode: MarketMode): Promise<void> => {
      await world.db.updateTable('markets').set({ mode }).where('market_id', '=', 1).execute()
    }
    for (const mode of ['cancel_only', 'halted'] as const) {
      it(`orders in a market that is ${mode}, and takes cancels`, async () => {
        const { body } = await world.place(alice, { quantity: '0.01' })
        restore.push(() => setMode('open'))
        await setMode(mode)
        const { headers } = await refuse({ when: '', status: 503, code: 'MARKET_NOT_OPEN' })
        expect(Number(headers['retry-after'])).to.be.greaterThan(0)
        expect((await world.cancel(alice, body.order.order_hash)).body.cancelled).to.equal(true)
      })
    }

    it('orders in a market that has ended', async () => {
      restore.push(() => setMode('open'))
      await setMode('settled')
      await refuse({ when: '', code: 'MARKET_ENDED' })
    })

    it('orders while the oracle price is stale or missing', async () => {
      restore.push(() => setOracle(world.db, perpetual, '100'))
      await setOracle(world.db, perpetual, '100', Date.now() - 3_600_000)
      const { body } = await refuse({ when: '', status: 503, code: 'ORACLE_STALE' })
      expect(body.details.retryable).to.equal(true)
      await world.db.deleteFrom('oracle_reports').where('market_id', '=', 1).execute()
      await refuse({ when: '', status: 503, code: 'ORACLE_STALE' })
    })

    it('orders while nobody has seen the chain', async () => {
      const see = (completed_at: number) =>
        world.db.updateTable('chain_progress').set({ completed_at }).execute()
      restore.push(() => see(Date.now()))
      await see(Date.now() - 3_600_000)
      await refuse({ when: '', status: 503, code: 'CHAIN_UNSEEN' })
    })
  })
})
