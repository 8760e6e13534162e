import tseslint from 'typescript-eslint';

/** Several assignments written as one of a tuple, unless a value on the right is one that the left assigns: a swap. */
const plainAssignments = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { split: 'Write one assignment each, unless values are swapped.' },
  },
  create(context) {
    const check = (node, left, right) => {
      if (left.type !== 'ArrayPattern' || right?.type !== 'ArrayExpression') return;
      if (right.elements.some((element) => element?.type === 'SpreadElement')) return;
      const text = (part) => context.sourceCode.getText(part);
      const values = right.elements.map((element) => (element ? text(element) : ''));
      const isSwap = left.elements.some(
        (target, at) => target && values.some((value, other) => other !== at && value.includes(text(target))),
      );
      if (node.type === 'VariableDeclarator' || !isSwap) context.report({ node, messageId: 'split' });
    };
    return {
      VariableDeclarator: (node) => check(node, node.id, node.init),
      AssignmentExpression: (node) => check(node, node.left, node.right),
    };
  },
};

export default tseslint.config(
  { ignores: ['dist', 'data', 'node_modules', '**/*.as.ts', '**/*.d.ts'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { sluice: { rules: { 'plain-assignments': plainAssignments } } },
    rules: {
      'sluice/plain-assignments': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression',
          message: 'Write the members themselves: a literal that spreads a literal costs a hidden class.',
        },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-empty': 'error',
      eqeqeq: 'error',
    },
  },
  {
    // node:test's describe/it/test return promises that the runner itself owns.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'it', 'describe', 'suite'] },
          ],
        },
      ],
    },
  },
);
