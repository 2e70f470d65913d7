import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  type CommandLine,
  decimal,
  type Flags,
  oneOf,
  parseArguments,
  positiveNumber,
  required,
  text,
  toggle,
  UsageError,
  wholeNumber,
  withDefault,
} from '../../service/command-line.ts'

const LINE = {
  command: 'npm run trade --',
  flags: {
    side: required(oneOf(['LONG', 'SHORT'], 'direction')),
    price: decimal('limit price'),
    port: withDefault(wholeNumber('port', { most: 65_535, kind: 'a port number' }), 8080),
    speed: withDefault(positiveNumber('speed'), 1),
    file: text('<file>', 'input'),
    'dry-run': toggle('send nothing'),
  },
} as const

describe('command line arguments', () => {
  const parse = (...args: string[]) => parseArguments(LINE, ['--side', 'LONG', ...args])

  it('when only required flags are given, it returns the defaults', () => {
    expect(parse()).to.deep.equal({
      side: 'LONG',
      price: undefined,
      port: 8080,
      speed: 1,
      file: undefined,
      'dry-run': false,
      positionals: [],
    })
  })

  it('when every flag is given, it returns the value of each', () => {
    const args = ['--price', '1.250', '--port=0', '--speed', '0.5', '--file', 'a.csv', '--dry-run']
    expect(parse(...args)).to.deep.include({
      price: '1.250',
      port: 0,
      speed: 0.5,
      file: 'a.csv',
      'dry-run': true,
    })
  })

  for (const [args, problem] of [
    [['--prot', '1'], "Unknown option '--prot'"],
    [['--port'], "Option '--port <value>' argument missing"],
    [['--dry-run=yes'], "Option '--dry-run' does not take an argument"],
    [['--port', '70000'], '--port must be a port number from 0 to 65535, not 70000'],
    [['--port', '1e3'], '--port must be a port number from 0 to 65535, not 1e3'],
    [['--speed', '0'], '--speed must be a positive number, not 0'],
    [['--speed', 'Infinity'], '--speed must be a positive number, not Infinity'],
    [['--price', '-1x'], "Option '--price' argument is ambiguous"],
    [['--price', '1,5'], '--price must be a decimal number, not 1,5'],
    [['--side', 'BUY'], '--side must be one of LONG, SHORT, not BUY'],
    [['--file', ''], '--file must be a text of at least one character, not '],
    [['extra'], 'unexpected argument extra'],
  ] as const) {
    it(`when the arguments are ${JSON.stringify(args)}, it rejects them with the problem and the usage`, () => {
      expect(() => parse(...args))
        .to.throw(UsageError, problem)
        .with.property('message')
        .that.includes('usage: npm run trade -- [options]\n  --side LONG|SHORT  direction\n')
    })
  }

  it('when a required flag is missing, it rejects the arguments by its name', () => {
    expect(() => parseArguments(LINE, [])).to.throw(UsageError, '--side is required')
  })

  it('when a tool takes arguments without flags, it returns them', () => {
    const line: CommandLine<Flags> = { command: 'npm test --', flags: {}, positionals: '[suite …]' }
    expect(parseArguments(line, ['a', 'b']).positionals).to.deep.equal(['a', 'b'])
  })
})
