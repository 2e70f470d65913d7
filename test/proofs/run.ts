/**
 * `npm run prove`: proves the properties of test/proofs/*.sol with solc's model checker, and writes docs/audit/proofs.md. Needs the solvers z3 and
 * cvc5 (`apt-get install z3 cvc5`). Arguments select properties by a part of contract or name; then no report is written.
 */
import { writeFileSync } from 'node:fs'
import { argumentsOf, wholeNumber, withDefault } from '../../service/command-line.ts'
import { prove, solverVersions, type Verdict } from './model-checker.ts'
import { allProperties, type Property } from './properties.ts'
import { reportOf } from './report.ts'

const { positionals, seconds, cap, ...values } = argumentsOf({
  command: 'npm run prove --',
  positionals: '[part of a name …]',
  flags: {
    seconds: withDefault(wholeNumber('limit of one solver for one condition, in seconds', { least: 1 }), 30),
    cap: withDefault(wholeNumber('limit of a property, in seconds', { least: 1 }), 240),
    share: withDefault(wholeNumber('prove only every n-th property', { least: 1 }), 1),
  },
})

const versions = solverVersions()
const isChosen = ({ contract, name }: Property): boolean =>
  positionals.length === 0 || positionals.some((part) => `${contract}.${name}`.includes(part))
const properties = allProperties().filter(isChosen)
const chosen = properties.filter((_, at) => at % values.share === 0)

const results: { property: Property; verdict: Verdict }[] = []
for (const property of chosen) {
  const verdict = prove(property, { query: seconds, property: cap })
  results.push({ property, verdict })
  const { status, decided, conditions, seconds: took } = verdict
  console.log(
    `${status.padEnd(10)} ${property.contract}.${property.name} (${decided} of ${conditions}, ${took} s)`,
  )
  if (status === 'refuted') for (const problem of verdict.problems) console.log(problem)
}

if (positionals.length === 0 && values.share === 1)
  writeFileSync('docs/audit/proofs.md', reportOf(results, versions, { query: seconds, property: cap }))
process.exitCode = results.some(({ verdict }) => verdict.status === 'refuted') ? 1 : 0
