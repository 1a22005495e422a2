"""The words of the corpus."""


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


NAMES = words(
    "Ada Anna Ben Carla David Elena Felix Greta Hugo Ida Jonas Karin Leo Maria Nils Olga "
    "Paul Rosa Simon Tessa Ugo Vera Walter Xenia Yara Zoe"
)
CITIES = words(
    "Athens Berlin Bern Cairo Dublin Geneva Hamburg Helsinki Kyoto Lisbon London Madrid Nairobi "
    "Oslo Paris Prague Quito Riga Rome Vienna Zagreb"
)
ANIMALS = words(
    "badger bear cat crow dog donkey fox goat hare hedgehog heron horse mole mouse otter owl "
    "rabbit raven seal swan turtle wolf"
)
PLACES = words(
    "bakery bridge castle cave cottage farm forest garden harbour hill island library "
    "lighthouse market meadow mill mountain river station tower valley village"
)
THINGS = words(
    "anchor apple basket bell boat book bottle box button candle chair clock coat coin compass "
    "cup door drum feather flag flute glove hammer hat key kite ladder lamp lantern letter "
    "mirror needle net pan parcel pencil piano pipe plate ring rope saddle scarf shell spoon "
    "stone table tent thread ticket umbrella wagon wheel whistle window"
)
ADJECTIVES = words(
    "amber ancient bitter blue brave bright broken calm clever cold copper crooked curious dark "
    "deep dusty early empty faint gentle golden green grey heavy hollow honest hungry iron "
    "kind late lazy light little lonely lost loud narrow old open pale patient plain proud "
    "quick quiet red rough round rusty sharp silent silver simple sleepy slow small smooth soft "
    "steady stiff strange strong sweet tall thin tired warm white wide wild wise wooden "
    "yellow young"
)
VERBS = words(
    "admired borrowed brought bought built carried cleaned counted dropped dried examined "
    "fetched filled found gave hid kept lent lifted lost made mended moved needed noticed "
    "opened painted polished pushed remembered repaired returned saved sold studied "
    "took touched traded wanted washed watched"
)
TIMES = (
    "at dawn",
    "at dusk",
    "at night",
    "at noon",
    "before breakfast",
    "after supper",
    "every morning",
    "in autumn",
    "in spring",
    "in summer",
    "in winter",
    "on Friday",
    "on Monday",
    "on Sunday",
    "when it rained",
    "without a word",
)
WEATHER = (
    "a cold wind",
    "a light rain",
    "a long silence",
    "a pale sun",
    "a thick fog",
    "fresh snow",
    "soft thunder",
    "warm air",
)
NUMBERS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
# The order is the order of the answers to "List three colours."
KINDS = {
    "animals": ("fox", "owl", "bear", "hare", "otter", "wolf", "swan", "mole"),
    "cities": ("Paris", "Rome", "Oslo", "Vienna", "Lisbon", "Athens", "Dublin", "Prague"),
    "colours": ("red", "green", "blue", "yellow", "white", "black", "orange", "purple"),
    "days of the week": (
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ),
    "fruits": ("apple", "pear", "plum", "cherry", "lemon", "grape", "fig", "peach"),
    "metals": ("iron", "copper", "silver", "gold", "tin", "lead", "zinc", "nickel"),
    "months": ("January", "February", "March", "April", "May", "June", "July", "August"),
    "planets": ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"),
    "shapes": ("circle", "square", "triangle", "star", "cross", "cube", "cone", "ring"),
    "tools": ("hammer", "saw", "drill", "file", "chisel", "plane", "wrench", "clamp"),
    "trees": ("oak", "pine", "birch", "ash", "elm", "maple", "willow", "cedar"),
    "vegetables": ("carrot", "potato", "onion", "bean", "pea", "leek", "beet", "radish"),
}
# Words of other texts, so that copying is not tied to the stories' words.
COMMON = words(
    "a about above add after again all always an and another answer any are around as ask at away "
    "back bad be because been before below best better between big both but by call can case "
    "change check close code come could data day did different do does done down each early end "
    "enough error even ever example far fast few file first follow for four from full get go good "
    "great group had hand has have he head help her here high him his home hour how if in into is "
    "it its just keep know large last later left less like line long look machine machines make "
    "many may me memory message mind minute model more most much must my name near never new next "
    "no node not nothing now number of off often on once one only open or other our out over own "
    "part people perhaps please point problem program put question rank read ready real rest "
    "right run same say see send server set she should show side since so some soon start state "
    "still stop such system take tell ten test text than that the their them then there these "
    "they thing think this those through time to today together token too turn two under until up "
    "us use user value very wait walk want was water way we week well were what when where which "
    "while who why will wind with word words work world would write wrong year yes yet you your"
)
WORDS = tuple(sorted({*ANIMALS, *PLACES, *THINGS, *ADJECTIVES, *VERBS}))
