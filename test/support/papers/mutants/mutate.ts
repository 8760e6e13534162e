import ts from 'typescript';

/** A small fault that can be put into a source file: the text from `start` to `end` becomes `mutated`. */
export interface Mutant {
  /** Path in src/. */
  readonly file: string;
  readonly line: number;
  /** The text of that line. */
  readonly within: string;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly original: string;
  readonly mutated: string;
}

type Fault = readonly [kind: string, node: ts.Node, mutated: string];

/** Operators and what each becomes. */
const OPERATORS: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [ts.SyntaxKind.AmpersandAmpersandToken, '||'],
  [ts.SyntaxKind.BarBarToken, '&&'],
  [ts.SyntaxKind.QuestionQuestionToken, '&&'],
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
  [ts.SyntaxKind.AsteriskToken, '/'],
  [ts.SyntaxKind.SlashToken, '*'],
  [ts.SyntaxKind.PlusEqualsToken, '-='],
  [ts.SyntaxKind.MinusEqualsToken, '+='],
]);

/**
 * All faults that can be put into a file. None is in types, imports and messages for people (strings with a space), so all but
 * few compile, and a test must notice each.
 */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const lines = text.split('\n');
  const visit = (node: ts.Node): void => {
    if (isWithoutEffect(node)) return;
    for (const [kind, at, mutated] of faultsOf(node, source)) {
      const [start, end] = [at.getStart(source), at.end];
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      const within = (lines[line - 1] ?? '').trim();
      mutants.push({ file, line, within, kind, start, end, original: text.slice(start, end), mutated });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return mutants;
}

/** The file's text with the fault. */
export function mutate(text: string, { start, end, mutated }: Mutant): string {
  return text.slice(0, start) + mutated + text.slice(end);
}

function isWithoutEffect(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isImportDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isExportDeclaration(node)
  );
}

function faultsOf(node: ts.Node, source: ts.SourceFile): Fault[] {
  const text = node.getText(source);
  return [...conditionFaults(node, source), ...statementFaults(node, source), ...valueFaults(node, text)];
}

function conditionFaults(node: ts.Node, source: ts.SourceFile): Fault[] {
  const negated = (condition: ts.Expression): Fault => [
    'negated condition',
    condition,
    `!(${condition.getText(source)})`,
  ];
  if (ts.isIfStatement(node) || ts.isWhileStatement(node)) return [negated(node.expression)];
  if (ts.isConditionalExpression(node)) return [negated(node.condition)];
  if (!ts.isBinaryExpression(node)) return [];
  const operator = OPERATORS.get(node.operatorToken.kind);
  return operator === undefined ? [] : [['operator', node.operatorToken, operator]];
}

function statementFaults(node: ts.Node, source: ts.SourceFile): Fault[] {
  if (ts.isExpressionStatement(node) && isCall(node.expression)) return [['removed call', node, ';']];
  if (ts.isAwaitExpression(node)) return [['removed await', node, node.expression.getText(source)]];
  if (ts.isReturnStatement(node) && node.expression && !isNothing(node.expression))
    return [['returned undefined', node.expression, 'undefined']];
  if (ts.isThrowStatement(node)) return [['removed throw', node, ';']];
  return [];
}

/** Also of a call that is awaited or whose result is thrown away. `super` must stay. */
function isCall(node: ts.Expression): boolean {
  if (ts.isAwaitExpression(node) || ts.isVoidExpression(node)) return isCall(node.expression);
  return ts.isCallExpression(node) && node.expression.kind !== ts.SyntaxKind.SuperKeyword;
}

function isNothing({ kind }: ts.Expression): boolean {
  return kind === ts.SyntaxKind.NullKeyword || kind === ts.SyntaxKind.FalseKeyword;
}

function valueFaults(node: ts.Node, text: string): Fault[] {
  const kind = 'constant';
  if (ts.isNumericLiteral(node) && !isName(node)) return [[kind, node, `(${text} + 1)`]];
  if (ts.isStringLiteral(node) && !isName(node) && !node.text.includes(' '))
    return [[kind, node, node.text === '' ? "'x'" : "''"]];
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 0 && !isAssigned(node))
    return [[kind, node, '[]']];
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [[kind, node, 'false']];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [[kind, node, 'true']];
  return [];
}

/** Whether a literal names a member. */
function isName(node: ts.Node): boolean {
  return ts.isPropertyAssignment(node.parent) && node.parent.name === node;
}

/** Whether an array is the left side of an assignment. */
function isAssigned(node: ts.Node): boolean {
  const { parent } = node;
  return (
    ts.isBinaryExpression(parent) &&
    parent.left === node &&
    parent.operatorToken.kind === ts.SyntaxKind.EqualsToken
  );
}
