/** Generates requests that no endpoint may execute: random ones, and valid ones with changes. Pure, from a seed. */

/** mulberry32: the same seed gives the same requests on every machine. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  of<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value
  }

  hex(bytes: number): string {
    return `0x${Array.from({ length: bytes }, () => this.below(256).toString(16).padStart(2, '0')).join('')}`
  }
}

/** A part of a schema of the OpenAPI description. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

export interface Operation {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly body: Schema | null
  /** A valid body may succeed: the operation only computes, or its effect is bounded per account. */
  readonly maySucceed: boolean
}

/** Values that valid requests would have, by the name of their field. */
export type Known = Readonly<Record<string, readonly unknown[]>>

export interface FuzzRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly payload?: string
}

const LONG = 'x'.repeat(5_000)
const NASTY: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -0,
    -1,
    1,
    1.5,
    1e21,
    2 ** 53,
    -(2 ** 63),
    4_294_967_296,
    [],
    {},
    [[]],
    ['', null],
  ],
  ...[
    '',
    ' ',
    '0',
    '-1',
    '1e400',
    'NaN',
    'null',
    '\u0000',
    'a\u0000b',
    '\ud800',
    '\u202e',
    '%00',
    '%',
    '\\',
    '"',
  ],
  ...[
    "'; drop table users; --",
    '../../etc/passwd',
    '0x',
    `0x${'f'.repeat(64)}`,
    `0x${'0'.repeat(40)}`,
    LONG,
  ],
  ...[
    '9'.repeat(78),
    '9'.repeat(400),
    '-9223372036854775809',
    '1970-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
  ],
  ...['__proto__', 'constructor', 'toString', { __proto__: 1, constructor: { prototype: 1 } }],
]

export class Generator {
  readonly random: Random
  readonly #known: Known
  readonly #credentials: readonly string[]

  /** `credentials`: valid Authorization headers. */
  constructor(seed: number, known: Known, credentials: readonly string[]) {
    this.random = new Random(seed)
    this.#known = known
    this.#credentials = credentials
  }

  request(operation: Operation): FuzzRequest {
    const { random } = this
    const { method, path, parameters } = operation
    const query = new URLSearchParams()
    const params = parameters.filter((parameter) => parameter.in === 'query')
    for (const { name, schema } of params)
      if (random.chance(0.4)) query.append(name, this.#text(name, schema))
    if (random.chance(0.1)) query.append(String(random.of(NASTY)), String(random.of(NASTY)))
    if (random.chance(0.05)) for (const { name } of params) query.append(name, String(random.of(NASTY)))
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
      return encodeURIComponent(this.#text(name, { type: 'string' }).toWellFormed())
    })
    const text = query.toString()
    const isEmpty = method === 'GET' || operation.body === null
    return {
      method,
      url: text === '' ? filled : `${filled}?${text}`,
      headers: this.#headers(isEmpty),
      ...(isEmpty ? {} : { payload: this.payload(operation.body as Schema, operation) }),
    }
  }

  #headers(isEmpty: boolean): Record<string, string> {
    const { random } = this
    const headers: Record<string, string> = {
      'x-forwarded-for': `10.${random.below(256)}.${random.below(256)}.${random.below(256)}`,
    }
    if (!isEmpty)
      headers['content-type'] = random.chance(0.97)
        ? 'application/json'
        : random.of(['text/plain', 'application/xml', ''])
    if (random.chance(0.05)) headers.accept = random.of(['text/csv', '*/*;q=0', ';;,', LONG.slice(0, 500)])
    if (random.chance(0.85)) headers.authorization = random.of(this.#credentials)
    else if (random.chance(0.8)) headers.authorization = random.of(this.#badCredentials())
    return headers
  }

  #badCredentials(): string[] {
    const { random } = this
    const part = () => Buffer.from(random.hex(20)).toString('base64url')
    const jwt = (header: object, payload: object) =>
      `Bearer ${[header, payload].map((each) => Buffer.from(JSON.stringify(each)).toString('base64url')).join('.')}.${part()}`
    return [
      ...[
        'Key',
        'Key x',
        `Key cb_${random.hex(24).slice(2)}`,
        'Bearer',
        `Bearer ${part()}.${part()}.${part()}`,
        'Basic eDp5',
      ],
      ...[
        'Bearer 123e4567-e89b-42d3-a456-426614174000',
        'key  a b',
        `Key ${'k'.repeat(3_000)}`,
        'Key \u00e9\u00ff',
      ],
      jwt({ alg: 'none' }, { wallet_address: random.hex(20) }),
      jwt({ alg: 'HS256', kid: 'x' }, { iss: 'x', aud: 'y', exp: 4_000_000_000 }),
      jwt({ alg: 'ES256', kid: random.hex(8) }, { exp: -1 }),
    ]
  }

  #text(name: string, schema: Schema): string {
    const value = this.random.chance(0.6) ? this.#valid(name, schema) : this.random.of(NASTY)
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  }

  /** A value of the schema, or one that the field has in valid requests. */
  #valid(name: string, schema: Schema): unknown {
    const { random } = this
    const known = this.#known[name]
    if (known !== undefined && random.chance(0.8)) return random.of(known)
    if (schema.enum !== undefined) return random.of(schema.enum)
    const type = typeof schema.type === 'string' ? schema.type : random.of(schema.type ?? ['string'])
    if (type === 'integer' || type === 'number') return random.of([0, 1, 2, 60, 4_000_000_000, 2 ** 53 - 1])
    if (type === 'boolean') return random.chance(0.5)
    if (type === 'array') return [this.#valid(name, { type: 'string' })]
    return random.of([random.hex(20), random.hex(32), random.hex(65), `${random.hex(65)}01`, '1', 'BTC-PERP'])
  }

  /** A body: JSON for the most part. */
  payload(schema: Schema, { maySucceed }: Pick<Operation, 'maySucceed'>): string {
    const { random } = this
    const body: Record<string, unknown> = {}
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const isRequired = schema.required?.includes(name) === true
      if (isRequired || random.chance(0.3)) body[name] = this.#valid(name, property)
    }
    const names = Object.keys(body)
    const changes = random.below(3)
    for (let change = 0; change < changes && names.length > 0; change++) {
      const name = random.of(names)
      if (random.chance(0.25)) delete body[name]
      else body[name] = random.of(NASTY)
    }
    // Without a signature to forge, a valid body would be executed; so would none at all.
    const isHarmless = maySucceed || 'signature' in (schema.properties ?? {})
    if (!isHarmless) body[`unknown_${random.below(9)}`] = random.of(NASTY)
    const text = JSON.stringify(body)
    if (random.chance(0.9)) return text
    return random.of([
      ...[
        text.slice(0, 1 + random.below(text.length - 1)),
        `${text}}`,
        `[${text}]`,
        isHarmless ? '' : '?',
        'null',
        '"text"',
        '1e999',
        '{"a":1,"a":2}',
      ],
      ...[
        `${'['.repeat(200)}${']'.repeat(200)}`,
        `{"nonce": ${'9'.repeat(500)}}`,
        text.replace('{', '{"__proto__": {"x": 1},'),
      ],
    ])
  }
}
