/** Explains a rejected signature: applies each common signing mistake to the order and tests whether the signature then fits. */
import { toHex, writeHex } from '../../domain/hex.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { triggerCondition } from '../../domain/orders/order.ts'
import {
  DOMAIN_NAME,
  DOMAIN_TYPE,
  DOMAIN_VERSION,
  ORDER_TYPE,
  packFlags,
  type SignatureRefusal,
} from '../../domain/orders/order-hash.ts'
import { ONE } from '../../domain/units.ts'
import { keccak, recover } from '../../service/crypto.ts'
import type { ErrorCode } from '../error-catalogue.ts'
import { ApiError } from '../errors.ts'

interface Fields {
  readonly flags: bigint
  /** Right-aligns bytes8 in its word, as some encoders do by mistake; the standard aligns it to the left. */
  readonly flagsRight?: boolean
  readonly quantity: bigint
  readonly price: bigint
  readonly trigger: bigint
  readonly condition: number
  readonly leverage: bigint
  readonly maker: string
  readonly expiration: bigint
}

interface Domain {
  readonly name: string
  readonly version: string
  readonly chainId: bigint
  readonly verifyingContract: string
}

interface Mistake {
  readonly hint: string
  readonly fields?: Partial<Fields>
  readonly domain?: Partial<Domain>
  /** The superseded struct, without triggerCondition. */
  readonly oldStruct?: boolean
}

const OLD_ORDER_TYPE = ORDER_TYPE.replace('uint8 triggerCondition,', '')
const text = (value: string): Uint8Array => Buffer.from(value)
const hashOf = (value: string): Uint8Array => Buffer.from(keccak(text(value)))
const join = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts)

function word(value: bigint): Uint8Array {
  return Buffer.from(BigInt.asUintN(256, value).toString(16).padStart(64, '0'), 'hex')
}

function digestOf(fields: Fields, domain: Domain, oldStruct: boolean): Uint8Array {
  const head = [
    hashOf(oldStruct ? OLD_ORDER_TYPE : ORDER_TYPE),
    word(fields.flagsRight ? fields.flags : fields.flags << 192n),
    ...[fields.quantity, fields.price, fields.trigger].map(word),
  ]
  const condition = oldStruct ? [] : [word(BigInt(fields.condition))]
  const tail = [fields.leverage, BigInt(fields.maker), fields.expiration].map(word)
  const separator = join(
    hashOf(DOMAIN_TYPE),
    hashOf(domain.name),
    hashOf(domain.version),
    word(domain.chainId),
    word(BigInt(domain.verifyingContract)),
  )
  const [domainHash, structHash] = [separator, join(...head, ...condition, ...tail)].map((part) =>
    Buffer.from(keccak(part)),
  )
  return Buffer.from(keccak(join(Buffer.from([0x19, 0x01]), domainHash as Buffer, structHash as Buffer)))
}

const personal = (message: Uint8Array): Uint8Array =>
  Buffer.from(keccak(join(text(`\x19Ethereum Signed Message:\n${message.length}`), message)))

const fieldsOf = (spec: MarketSpec, order: Order): Fields => ({
  flags: packFlags(order),
  quantity: quantityOf(spec, order.quantity),
  price: priceOf(spec, order.price),
  trigger: priceOf(spec, order.trigger),
  condition: triggerCondition(order.type, order.side),
  leverage: BigInt(order.leverage) * ONE,
  maker: order.maker,
  expiration: BigInt(order.expiration),
})

const domainOf = (spec: MarketSpec): Domain => ({
  name: DOMAIN_NAME,
  version: DOMAIN_VERSION,
  chainId: spec.chainId,
  verifyingContract: spec.trader,
})

const CHAINS = [4326n, 6343n, 1n, 31337n]

function domainMistakes(spec: MarketSpec, others: readonly MarketSpec[]): Mistake[] {
  return [
    ...CHAINS.filter((chainId) => chainId !== spec.chainId).map((chainId) => ({
      hint: `The order was signed for chain id ${chainId}; sign it for chain id ${spec.chainId}.`,
      domain: { chainId },
    })),
    ...others
      .filter(({ marketId }) => marketId !== spec.marketId)
      .map(({ marketId, trader }) => ({
        hint: `The order was signed for the contract of market ${marketId}; sign it for ${spec.trader}.`,
        domain: { verifyingContract: trader },
      })),
    {
      hint: 'The order was signed with domain version 1.0; the domain version must be 2.0.',
      domain: { version: '1.0' },
    },
    {
      hint: 'The order was signed with domain version 2; the domain version must be 2.0.',
      domain: { version: '2' },
    },
    { hint: 'The signed struct lacks triggerCondition; use struct version 2.', oldStruct: true },
    {
      hint: 'The signed struct and domain have version 1; use triggerCondition and domain version 2.0.',
      oldStruct: true,
      domain: { version: '1.0' },
    },
  ]
}

function flagMistakes(order: Order): Mistake[] {
  const flags = packFlags(order)
  const bits = flags & 15n
  const { salt } = order
  return [
    { hint: 'The signed side is the opposite of the submitted one.', fields: { flags: flags ^ 1n } },
    { hint: 'The signed reduce-only bit differs from the submitted one.', fields: { flags: flags ^ 2n } },
    {
      hint: 'The signed side and reduce-only bit differ from the submitted ones.',
      fields: { flags: flags ^ 3n },
    },
    { hint: 'The salt must be shifted left by 4 bits in flags.', fields: { flags: salt | bits } },
    { hint: 'The signed flags lack the side and reduce-only bits.', fields: { flags: salt << 4n } },
    { hint: 'bytes8 flags must be left-aligned in their word.', fields: { flags, flagsRight: true } },
    {
      hint: 'The signed salt is one higher than the submitted one.',
      fields: { flags: ((salt + 1n) << 4n) | bits },
    },
    {
      hint: 'The signed salt is one lower than the submitted one.',
      fields: { flags: ((salt - 1n) << 4n) | bits },
    },
    { hint: 'The signed salt is 0; the submitted one is not.', fields: { flags: bits } },
  ]
}

const CONDITIONS = [0, 1, 2, 3]

function conditionMistakes({ type, side }: Order): Mistake[] {
  const right = triggerCondition(type, side)
  return CONDITIONS.filter((condition) => condition !== right).map((condition) => ({
    hint: `The signed triggerCondition is ${condition}; it must be ${right} for ${type} ${side}.`,
    fields: { condition },
  }))
}

function amountMistakes(spec: MarketSpec, order: Order): Mistake[] {
  const { price, quantity, trigger, leverage, expiration } = fieldsOf(spec, order)
  return [
    { hint: 'The signed price is 0, as for a market order.', fields: { price: 0n } },
    { hint: 'The signed price must be multiplied by 1e18.', fields: { price: price / ONE } },
    { hint: 'The signed quantity must be multiplied by 1e18.', fields: { quantity: quantity / ONE } },
    {
      hint: 'The signed price, quantity and leverage must be multiplied by 1e18.',
      fields: { price: price / ONE, quantity: quantity / ONE, leverage: leverage / ONE },
    },
    { hint: 'The signed leverage must be multiplied by 1e18.', fields: { leverage: leverage / ONE } },
    { hint: 'The signed leverage is 1; the submitted one is not.', fields: { leverage: ONE } },
    { hint: 'The signed leverage is 0.', fields: { leverage: 0n } },
    { hint: 'The signed expiration is 0; the submitted one is not.', fields: { expiration: 0n } },
    {
      hint: 'The signed expiration is in milliseconds; sign it in seconds.',
      fields: { expiration: expiration * 1000n },
    },
    { hint: 'The signed trigger price is 0; the submitted one is not.', fields: { trigger: 0n } },
    { hint: 'The signed trigger price must be multiplied by 1e18.', fields: { trigger: trigger / ONE } },
    ...conditionMistakes(order),
  ]
}

interface SignatureParts {
  readonly rs: Uint8Array
  readonly recoveryId: 0 | 1
}

/** r, s and v of a signature whose form may otherwise be wrong; null if they cannot be read. */
function readSignatureParts(signature: string): SignatureParts | null {
  const bytes = new Uint8Array(65)
  if (
    !/^0x[0-9a-fA-F]{130}([0-9a-fA-F]{2})?$/.test(signature) ||
    !writeHex(signature.slice(0, 132), bytes, 0)
  )
    return null
  const v = bytes[64] as number
  const recoveryId = v >= 27 ? v - 27 : v
  return recoveryId === 0 || recoveryId === 1 ? { rs: bytes.subarray(0, 64), recoveryId } : null
}

export interface RejectedSignature {
  readonly spec: MarketSpec
  readonly order: Order
  readonly signature: string
  readonly others: readonly MarketSpec[]
  /** Digest and signer if the form of the signature is valid: computing them again would cost as much as verifying it. */
  readonly recovered: { readonly hash: string; readonly signer: string } | null
  /** The error in the form of the signature; null if the form is valid and only the signer differs from the maker. */
  readonly refusal: SignatureRefusal | null
  /** Whether to search for the mistake, which takes dozens of recoveries. */
  readonly searchMistake: boolean
}

function findMistake(
  { spec, order, others }: RejectedSignature,
  isSignedByMaker: (hash: Uint8Array) => boolean,
): string | null {
  const [fields, domain] = [fieldsOf(spec, order), domainOf(spec)]
  const digest = digestOf(fields, domain, false)
  if (isSignedByMaker(digest)) {
    return 'The typed-data hash itself was signed; sign its 32 bytes as a personal message.'
  }
  if (isSignedByMaker(personal(text(toHex(digest))))) {
    return 'The hex text of the hash was signed as a personal message; sign its 32 bytes.'
  }
  const mistakes = [...domainMistakes(spec, others), ...flagMistakes(order), ...amountMistakes(spec, order)]
  const found = mistakes.find((mistake) =>
    isSignedByMaker(
      personal(
        digestOf(
          { ...fields, ...mistake.fields },
          { ...domain, ...mistake.domain },
          mistake.oldStruct ?? false,
        ),
      ),
    ),
  )
  return found?.hint ?? null
}

const FORM_HINTS: Record<SignatureRefusal['code'], string> = {
  SIGNATURE_FORMAT: 'Send r, s and v (65 bytes) and the suffix 01 as hex with 0x.',
  SIGNATURE_SUFFIX: 'Append the byte 01, which selects personal-message verification.',
  SIGNATURE_V: 'v must be 27 or 28.',
  SIGNATURE_HIGH_S: 'Send the equivalent signature with the lower s and the other v.',
  SIGNATURE_UNRECOVERABLE: 'No public key matches r and s; sign the digest again.',
}

function formHint(refusal: SignatureRefusal, signature: string, isMakers: boolean): string {
  if (isMakers && signature.length === 132)
    return 'The signature is valid except for the missing suffix; append the byte 01.'
  return FORM_HINTS[refusal.code]
}

const hintWithoutMistake = (wasSearched: boolean): string =>
  wasSearched
    ? 'No common mistake fits. Compare the digest with yours: either a field differs, or another key signed.'
    : 'Compare the digest with yours. Common mistakes are searched only for the first wrong signatures of a batch and of a second.'

/** Digest and signer of an order whose signature has a wrong form, as far as it can be read. */
function readLeniently({ spec, order }: RejectedSignature, signerOf: (hash: Uint8Array) => string | null) {
  const digest = digestOf(fieldsOf(spec, order), domainOf(spec), false)
  return { hash: toHex(digest), signer: signerOf(personal(digest)) }
}

/** The error for a rejected signature, with the digest, domain, signers and a hint, so that the trader can compare them. */
export function diagnoseSignature(rejected: RejectedSignature): ApiError {
  const { spec, order, signature, refusal, searchMistake } = rejected
  const parts = readSignatureParts(signature)
  const signerOf = (hash: Uint8Array): string | null => {
    const signer = parts && recover(hash, parts.rs, parts.recoveryId)
    return signer ? toHex(signer) : null
  }
  const { hash: digest, signer: recovered } = rejected.recovered ?? readLeniently(rejected, signerOf)
  const isMakers = recovered === order.maker
  const mistake =
    isMakers || parts === null || !searchMistake
      ? null
      : findMistake(rejected, (hash) => signerOf(hash) === order.maker)
  const hint =
    mistake ?? (refusal ? formHint(refusal, signature, isMakers) : hintWithoutMistake(searchMistake))
  const code: ErrorCode = refusal?.code ?? 'SIGNATURE_MISMATCH'
  const domain = { ...domainOf(spec), chainId: Number(spec.chainId) }
  return new ApiError(code, {
    field: 'signature',
    ...(refusal && 'expected' in refusal ? { expected: refusal.expected, received: refusal.received } : {}),
    hint,
    digest,
    domain,
    recovered_signer: recovered,
    expected_signer: order.maker,
  })
}
