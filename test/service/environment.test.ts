/** The reader of environment variables: what it accepts, and what its errors contain. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ConfigError, environment } from '../../service/environment.ts'

const ADDRESS = `0x${'Ab'.repeat(20)}`

describe('environment', () => {
  const read = (env: Record<string, string>) => environment(env, 'keeper')
  const messageOf = (work: () => unknown): string => {
    try {
      work()
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigError)
      return (error as Error).message
    }
    throw new Error('no error')
  }

  it('when variables are valid, it returns their values', () => {
    const env = read({ A: '5', B: 'postgres://u:p@h/d', C: 'On', D: ADDRESS, E: '12' })
    expect(env.count('A')).to.equal(5)
    expect(env.url('B', ['postgres:'])).to.equal('postgres://u:p@h/d')
    expect(env.flag('C', false)).to.equal(true)
    expect(env.address('D')).to.equal(ADDRESS.toLowerCase())
    expect(env.amount('E', 0n)).to.equal(12n)
  })

  it('when a variable is empty or missing, it returns the fallback', () => {
    const env = read({ A: '' })
    expect(env.count('A', 7)).to.equal(7)
    expect(env.text('B', 'x')).to.equal('x')
    expect(env.flag('C', true)).to.equal(true)
    expect(env.optional('A')).to.equal(null)
  })

  it('when a variable without a fallback is missing, the error names it and the process', () => {
    expect(messageOf(() => read({}).http('RPC_URL'))).to.equal(
      'RPC_URL is not set: the keeper cannot start without it',
    )
  })

  for (const [value, call, message] of [
    ['mega', 'count', 'X is "mega": expected a whole number of at least 1'],
    ['0', 'count', 'X is "0": expected a whole number of at least 1'],
    ['1.5', 'count', 'X is "1.5": expected a whole number of at least 1'],
    ['-1', 'amount', 'X is "-1": expected an amount in wei, decimal digits only'],
    ['maybe', 'flag', 'X is "maybe": expected one of on, true, 1, off, false, 0'],
    ['0x12', 'address', 'X is "0x12": expected an address, 0x and 40 hexadecimal digits'],
  ] as const) {
    it(`when ${call} reads ${value}, the error contains the variable, the value and a valid value`, () => {
      const env = read({ X: value })
      const calls = {
        count: () => env.count('X', undefined, 1),
        amount: () => env.amount('X', 0n),
        flag: () => env.flag('X', false),
        address: () => env.address('X'),
      }
      expect(messageOf(calls[call])).to.equal(message)
    })
  }

  it('when a URL has another protocol, the error names the protocol and not the password', () => {
    const env = read({ DATABASE_URL: 'mysql://user:secret@host/db' })
    expect(messageOf(() => env.database())).to.equal(
      'DATABASE_URL has protocol mysql: expected a URL with protocol postgres: or postgresql:',
    )
  })

  it('when a value is not a URL, the error does not repeat it', () => {
    const message = messageOf(() => read({ DATABASE_URL: 'user:secret@host' }).database())
    expect(message)
      .to.match(/^DATABASE_URL /)
      .and.not.include('secret')
  })

  it('when the common variables are not set, every process gets the same defaults', () => {
    expect(read({}).process(8081)).to.deep.equal({
      internal: { host: '127.0.0.1', port: 8081 },
      logLevel: 'info',
      logFileBytes: 0,
      drainMs: 10_000,
      killAt: null,
    })
  })

  for (const [name, value] of [
    ['INTERNAL_PORT', '70000'],
    ['LOG_LEVEL', 'loud'],
    ['DRAIN_MS', '0'],
    ['DRAIN_MS', '18001'],
  ] as const) {
    it(`when ${name} is ${value}, it rejects it by name`, () => {
      const message = messageOf(() => read({ [name]: value }).process(8081))
      expect(message).to.match(new RegExp(`^${name} is "${value}": expected `))
    })
  }
})
