// The custom entity that the tests' app declares in its manifest, and the conditions of transactions:
//
//   app:
//     storage:
//       entities:
//         - name: keyward
//           attributes:
//             version: { type: string }
//             expires: { type: float }
//             value: { type: any }
//             metadata: { type: any }
import { Refused } from './installation.js';

const NAME = 'keyward';
const ATTRIBUTES = { version: 'string', expires: 'number', value: 'any', metadata: 'any' };

/** The name of an entity that is declared. */
export function checkEntity(name) {
    if (name !== NAME) throw new Refused(400, 'INVALID_ENTITY_TYPE', `the manifest declares no entity ${name}`);
    return name;
}

/** Refuses values whose attributes are not as declared. */
export function checkEntityValue(value) {
    const isRight = ([name, attribute]) => {
        const type = ATTRIBUTES[name];
        return type === 'any' || type === typeof attribute;
    };
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.entries(value).every(isRight)) {
        throw new Refused(400, 'INVALID_ENTITY_VALUE', 'Entity values must match one of the types defined in Custom Entities.');
    }
}

const CONDITIONS = {
    EQUAL_TO: (attribute, value) => attribute === value,
    NOT_EQUAL_TO: (attribute, value) => attribute !== value,
    GREATER_THAN: (attribute, value) => attribute > value,
    GREATER_THAN_EQUAL_TO: (attribute, value) => attribute >= value,
    LESS_THAN: (attribute, value) => attribute < value,
    LESS_THAN_EQUAL_TO: (attribute, value) => attribute <= value,
};

/** Whether an entity meets conditions. What they mean where there is no entity is not documented: none is met. */
export function holds(conditions, row) {
    const { and = [], or = [] } = conditions;
    if ((and.length === 0) === (or.length === 0)) throw new Refused(400, 'BAD_REQUEST', 'conditions must have and, or or');
    if (row === undefined) return false;
    const value = JSON.parse(row.value);
    const isMet = ({ property, condition, values }) => {
        const compare = CONDITIONS[condition];
        if (compare === undefined || values.length !== 1) throw new Refused(400, 'INVALID_FILTER_CONDITION', `no ${condition}`);
        return value[property] !== undefined && compare(value[property], values[0]);
    };
    return and.every(isMet) && (or.length === 0 || or.some(isMet));
}
