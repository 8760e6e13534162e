import { named, Type } from '../../schema.ts';

/** The answer of /{resource}/values. */
export const VALUES = named(
  'Values',
  Type.Object(
    {
      data: Type.Array(
        Type.Object(
          {
            value: Type.Unknown({ description: 'the value, as rows show it; null: null or missing' }),
            count: Type.Optional(
              Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
                description: 'the number of rows with this value; null: the time was up',
              }),
            ),
          },
          { additionalProperties: false, description: 'a value' },
        ),
        { description: 'the distinct values, ascending' },
      ),
      page: Type.Object(
        {
          limit: Type.Integer({ minimum: 1, description: 'the largest number of values' }),
          hasMore: Type.Boolean({ description: 'whether more values may follow' }),
          nextCursor: Type.Unsafe<string | null>({
            type: ['string', 'null'],
            description: 'the cursor that continues after the last value',
          }),
        },
        { additionalProperties: false, description: 'how to continue' },
      ),
      countsAre: Type.Optional(
        Type.Unsafe<'exact' | 'partial'>({
          type: 'string',
          enum: ['exact', 'partial'],
          description: 'partial: some counts are null',
        }),
      ),
    },
    { additionalProperties: false, description: 'a page of distinct values' },
  ),
);
