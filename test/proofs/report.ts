/** docs/proofs.md: what `npm run prove` proved, and what stays tested only. */
import type { Limits, Verdict } from './model-checker.ts'
import type { Property } from './properties.ts'

interface Result {
  readonly property: Property
  readonly verdict: Verdict
}

const INTRODUCTION = `# Machine-checked properties

Properties of the pure libraries, stated in \`test/proofs/*.sol\` and given to solc's model checker (SMTChecker, engine BMC; no function has a
loop, so nothing is bounded) by \`npm run prove\`, which writes this file. A property is *proved* if the solvers show that no input within the
stated bounds breaks an assertion, overflows, or divides by zero, in the property and in the library code that it calls. The bounds are those
of the table "Bounds of unchecked blocks" in \`contracts/README.md\`. \`test/proofs/model-checker.ts\` states what is changed for the proof:
unchecked arithmetic is checked, a revert is a failed \`require\`, and functions that use state are left out.

Not provable this way, and therefore only tested with generated input and by mutation: bit layouts and inline assembly (\`PositionLib.pack\`,
\`unpack\`, \`addMargin\`; \`OrderLib.read\`) and functions that read an order's packed words (\`PositionLib.applyFill\`), because the checker treats words as numbers and skips assembly. The states of \`SaltLib\` are a finite
set: \`test/parity/salts.exhaustive.test.ts\` runs every sequence of three operations on two orders of one word, at every place of the word. An
*undecided* property is one for which the solvers reached their time limit; the last column names the test that checks it.`

const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

export function reportOf(results: readonly Result[], versions: readonly string[], limits: Limits): string {
  const proved = results.filter(({ verdict }) => verdict.status === 'proved').length
  const lines = [
    INTRODUCTION,
    '',
    `${proved} of ${results.length} properties are proved. Solvers: ${versions.join('; ')}. Limits: ${limits.query} s per condition and`,
    `solver, ${limits.property} s per property.`,
    '',
    row('library', 'property', 'statement', 'result', 'conditions', 'solver', 's', 'also tested by'),
    `|${'---|'.repeat(8)}`,
    ...results.map(({ property, verdict }) => {
      const { library, name, statement, fuzzed } = property
      const { status, decided, conditions, seconds, solvers } = verdict
      const share = decided === conditions ? conditions : `${decided} of ${conditions}`
      return row(
        `\`${library}\``,
        `\`${name}\``,
        statement,
        status,
        share,
        solvers.join(', '),
        seconds,
        `\`${fuzzed}\``,
      )
    }),
  ]
  return `${lines.join('\n')}\n`
}
