import { terms } from "../engines/search/words.ts";

/** A subject that visitors ask about in words other than the page's. */
export interface Topic {
  name: string;
  /** Terms (as `terms` makes them) that stand for the subject, in seven languages. */
  terms: ReadonlySet<string>;
  /** Ways to ask for it without naming it; matched against `folded` text. */
  asks?: RegExp;
  /** What a sentence that answers holds. */
  shape?: RegExp;
  /** How much holding the shape counts where the words are missing, 0 to 1. */
  shapeCounts: number;
}

const SHAPE_COUNTS = 0.75;
const OTHER_DAY_COUNTS = 0.5;

const MONTHS =
  "jan(?:uary|uar|vier|eiro)?|feb(?:ruary|ruar|braio|rero)?|fevr?(?:ier|ereiro)?|m(?:ar(?:ch|zo|s|co)?|arz|aerz|aart)|apr(?:il|ile)?|avril|abril|" +
  "ma[yi]|maggio|mayo|mei|maio|june?|juni|juin|junio|giugno|junho|jul[yi]?|juillet|julio|luglio|julho|aug(?:ust|ustus)?|aout|agosto|" +
  "sep(?:t|tember|tembre|tiembre)?|settembre|setembro|o[ck]t(?:ober|obre)?|octubre|ottobre|outubro|nov(?:ember|embre|iembre|embro)?|" +
  "de[cz](?:ember|embre|iembre|embro)?|dicembre|diciembre";
const DAYS =
  "(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|lundi|mardi|mercredi|jeudi|vendredi|samedi|" +
  "dimanche|lunes|martes|miercoles|jueves|viernes|sabados?|domingos?|lunedi|martedi|mercoledi|giovedi|venerdi|sabato|domenica|" +
  "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|segunda|terca|quarta|quinta|sexta|weekends?|wochenende";

const PRICE =
  /[€$£¥₹]\s?\d|\d\s?(?:[€$£¥₹]|,-)|\b(?:eur|usd|gbp|chf|cad|aud|brl)\b|\d\s?(?:euros?|dollars?|pounds?|francs?|franken|reais|real|cents?|kr|sek|dkk|nok|pln|zl)\b|\br\$\s?\d|\b(?:free of charge|for free|is free|are free|kostenlos|kostenfrei|umsonst|gratuite?s?|gratis|gratuito|gratuita|included|inklusive|gratuitement)\b/;
const CLOCK =
  /\b\d{1,2}\s?[:.h]\s?\d{2}\b|\b\d{1,2}\s?(?:a\.?m\.?|p\.?m\.?|uhr|h|uur|heures?|ore|horas?)\b|\b24\s?\/\s?7\b|\b(?:noon|midnight|mittags?|mitternacht|midi|minuit)\b|\b(?:closed|geschlossen|ferme|fermee|cerrado|cerrada|chiuso|chiusi|gesloten|fechado|fechada|around the clock|rund um die uhr)\b/;
const DATE = new RegExp(
  `\\b(?:${MONTHS})\\b|\\b(?:${DAYS})\\b|\\b\\d{1,2}[./]\\d{1,2}[./](?:\\d{2,4})?|\\b(?:19|20)\\d{2}\\b|\\b(?:daily|every day|taglich|tous les jours|todos los dias|ogni giorno|dagelijks|todos os dias)\\b`,
);
const CONTACT = /[^\s@]+@[^\s@]+\.\p{L}{2,}|\+\d[\d\s()./-]{6,}\d|\b\d{2,5}[\s/-]\d{3,}[\d\s-]*\d/u;
const LENGTH =
  /\b(?:\d+|one|two|three|four|five|six|seven|ten|half|an|ein(?:e|en|er)?|zwei|drei|vier|funf|une?|deux|trois|dos|tres|due|tre|twee|drie|dois|duas|overnight|same)(?:[-\s–]*(?:to|bis|a|tot|ate|or|oder|und|and|\d+))*[-\s](?:business |working |calendar )?(?:seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?|sekunden?|minuten?|std|stunden?|werktagen?|tagen?|tage?|wochen?|monate?n?|jahre?n?|secondes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|dias?|semanas?|meses|mes|anos?|minuti|ore|ora|giorni|giorno|settimane|mesi|anni|anno|uren|uur|dagen|werkdagen|weken|maanden|jaar)\b/;
const PLACE =
  /\b\d{4,5}\s\p{Lu}|\p{L}(?:strasse|str\.|straat|weg|platz|plein|allee)\b|\b(?:street|st\.|road|rd\.?|avenue|ave\.?|lane|square|rue|place|boulevard|quai|calle|plaza|paseo|avenida|via|piazza|corso|viale|rua|travessa|floor|opposite|next to|near|gegenuber|neben|bahnhof|station|gare|based in|located|sitz|liegt|befindet|situe)\b|\s(?:in|at|from|bei|à|en|a|te|em|im|am)\s\p{Lu}/u;
const COUNT =
  /\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|unlimited|zwei|drei|vier|funf|sechs|sieben|acht|neun|zehn|zwolf|unbegrenzt|deux|trois|quatre|cinq|sept|huit|neuf|dix|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|twee|drie|vijf|zes|zeven|negen|tien|dois|duas|quatro|sete|oito|dez|ilimitad[oa]s?|illimite[es]*|illimitat[oi]|onbeperkt)\b/;

const rows: [name: string, words: string, asks?: RegExp | undefined, shape?: RegExp][] = [
  [
    "price",
    "price prices priced pricing cost costs fee fees charge charges tariff expensive cheap cheapest preis preise preisliste kosten kostet " +
      "gebühr gebühren tarif tarife teuer günstig prix coût coûts coûte coûtent tarifs cher chère frais precio precios cuesta cuestan coste costes " +
      "tarifa tarifas caro barato prezzo prezzi costo costa costano tariffa tariffe prijs prijzen kost tarief tarieven duur goedkoop preço preços custo " +
      "custa custam",
    /\bhow much (?:is|are|does|do|for|to|would|will|per|it|you)\b|\bhow much\??$|\bwas (?:kostet|kosten|zahle)|\bwie ?viel (?:kostet|kosten|zahl)|\bcombien (?:ca |cela )?(?:cout|est-ce que (?:ca|cela) cout)|\bcuanto (?:cuesta|cuestan|vale|valen|cobra)|\bquanto (?:costa|custa|viene|fica|sai)|\bhoeveel kost/,
    PRICE,
  ],
  [
    "hours",
    "open opens opening close closes closing closed hours geöffnet offen öffnet öffnen öffnungszeiten öffnungszeit geschlossen schließt schließen uhr " +
      "uhrzeit horaires horaire ouvert ouverte ouverts ouvrez ouvre ferme fermé fermez fermeture horario horarios abierto abierta abiertos abren abre " +
      "abrís cierra cierran cerrado orari orario aperto aperti aperta apre aprite chiude chiudete chiuso openingstijden geopend opent gesloten sluit sluiten " +
      "horário horários aberto aberta abrem fecha fecham fechado",
    /\bwhat time\b|\bwhich days\b|\bum wie ?viel uhr\b|\bwann (?:habt|haben|seid|sind) (?:ihr|sie)\b.*\b(?:offen|auf|geoffnet|zu)\b|\ba quelle heure\b|\ba que hora|\ba che ora\b|\bhoe laat\b|\b(?:a )?que horas\b|\bon (?:sun|mon|tues|wednes|thurs|fri|satur)days?\??$/,
    CLOCK,
  ],
  [
    "date",
    "date dates deadline datum termine frist fecha fechas scadenza prazo",
    /^(?:and |so )?when\b|\bwhat (?:date|day|year)\b|\bwhich year\b|\bab wann\b|\bwann\b|\bquand\b|\bquel jour\b|\bcuando\b|\bque dia\b|\bquando\b|\bwanneer\b|\bin welchem jahr\b/,
    DATE,
  ],
  [
    "place",
    "address based located location locations directions situated adresse standort standorte anfahrt lage adresse située situé trouve dirección ubicación " +
      "ubicados ubicado encuentra indirizzo sede trova trovate adres locatie gevestigd endereço morada localização localizados",
    /\bwhere (?:are|is|can i find|do i find|exactly|do you)\b|\bhow (?:do|can) i get (?:there|to you)\b|\bwo (?:ist|sind|seid|liegt|finde|befindet)\b|\b(?:o|ou) (?:etes|est|se trouve|vous trouv|puis)|\bdonde (?:esta|estan|se|os|puedo)\b|\bdove (?:si|siete|vi|posso|e)\b|\bwaar (?:is|zijn|zitten|kan|vind)\b|\bonde (?:fica|ficam|e|esta|estao|posso)\b/,
    PLACE,
  ],
  [
    "founding",
    "founded established gegründet gründung besteht fondé fondée créée fundada fundado fondata fondato opgericht bestaat",
    /\b(?:since when|seit wann|depuis quand|desde cuando|da quando|sinds wanneer|desde quando)\b/,
    /\b(?:1[5-9]|20)\d{2}\b/,
  ],
  [
    "contact",
    "phone telephone call email mail contact reach telefon telefonnummer anrufen erreichen erreiche kontakt kontaktieren téléphone appeler joindre contacter " +
      "teléfono llamar contacto contactar correo telefono chiamare contatto contatti contattare telefoon bellen telefoonnummer contacteren bereiken " +
      "telefone ligar contato contacto contatar contactar",
    undefined,
    CONTACT,
  ],
  [
    "duration",
    "duration last lasts take takes long dauer dauert durée dure duración dura durata duração demora tarda lang duurt",
    /\bhow (?:long|fast|quickly|soon|early|far (?:in advance|ahead)|many (?:days|weeks|hours|minutes))\b|\bwie (?:lange|schnell|fruh|weit im voraus)\b|\bcombien de (?:temps|jours|semaines|minutes)\b|\bcuanto (?:tiempo|tarda|tardan|dura|demora)|\bquanto (?:tempo|dura|ci vuole|demora)\b|\bhoe (?:lang|snel)\b|\bin quanto tempo\b/,
    LENGTH,
  ],
  [
    "count",
    "",
    /\bhow many\b|\bwie ?viele\b|\bcombien d\b|\bcombien de (?!temps)|\bcuant[oa]s\b|\bquant[ie]\b|\bquant[oa]s\b|\bhoeveel (?!kost)/,
    COUNT,
  ],
  [
    "payment",
    "pay payment payments paying card cards credit cash invoice paypal visa mastercard zahlen bezahlen zahlung zahlungsarten karte kreditkarte bar rechnung barzahlung payer paiement paiements carte espèces facture régler pagar pago pagos tarjeta tarjetas efectivo factura pagare pagamento pagamenti carta carte contanti fattura betalen betaling betaalmethoden kaart contant factuur pagamento cartão dinheiro fatura",
  ],
  [
    "delivery",
    "deliver delivers delivery deliveries ship ships shipping shipped dispatch shipment liefern liefert lieferung lieferungen lieferzeit versand versenden verschickt livrer livrez livraison livraisons expédition expédiez entrega entregas entregan envío envíos enviar envían consegna consegne consegnate spedizione spedizioni spedite levering leveren bezorging bezorgen verzending verzenden entregam envio envios frete",
  ],
  [
    "return",
    "return returns refund refunds refunded rückgabe zurückgeben umtausch erstattung rückerstattung widerruf rückgaberecht retour retours remboursement remboursé rembourser devolución devoluciones reembolso devolver reso resi rimborso rimborsi restituire retourneren terugbetaling terugsturen devolução devoluções devolver",
  ],
  [
    "cancel",
    "cancel cancellation cancelled cancelling stornieren stornierung kündigen kündigung kündigungsfrist absagen storno annuler annulation résilier résiliation cancelar cancelación anular annullare annullamento cancellare cancellazione disdire disdetta annuleren annulering opzeggen opzegtermijn cancelamento desmarcar",
  ],
  [
    "booking",
    "book booking bookings reserve reservation reservations appointment appointments buchen buchung reservieren reservierung termin termine réserver réservation réservations rendez reservar reserva reservas cita citas prenotare prenotazione prenotazioni appuntamento boeken boeking reserveren reservering afspraak marcar marcação agendar agendamento",
  ],
  ["warranty", "warranty guarantee guaranteed guarantees garantie gewährleistung garantía garanzia garantia"],
  [
    "trial",
    "trial try testen testphase probezeit probemonat probestunde schnuppern essai essayer prueba probar prova provare proef proberen proefperiode teste experimentar avaliação",
  ],
  ["free", "free kostenlos gratis kostenfrei umsonst gratuit gratuite gratuits gratuito gratuita gratuitamente"],
  [
    "parking",
    "parking parkplatz parkplätze parken parkhaus stationnement stationner garer aparcamiento aparcar estacionamiento parcheggio parcheggiare parkeren parkeerplaats parkeergelegenheid estacionamento estacionar",
  ],
  [
    "language",
    "language languages sprache sprachen sprecht langue langues parlez idioma idiomas habláis hablan lingua lingue parlate taal talen spreken língua línguas falam",
  ],
  [
    "discount",
    "discount discounts reduced rabatt rabatte ermäßigung ermäßigt nachlass remise réduction réductions descuento descuentos sconto sconti korting kortingen desconto descontos",
  ],
  [
    "children",
    "child children kid kids toddler baby daughter tochter sohn fille hija hijo figlia figlio dochter zoon filha filho kind kinder kindern enfant enfants niño niños bambino bambini kinderen criança crianças",
  ],
  [
    "student",
    "student students studenten studierende schüler étudiant étudiants estudiante estudiantes studenti studente estudante estudantes",
  ],
  [
    "pets",
    "pet pets dog dogs cat hund hunde haustier haustiere vierbeiner chien chiens animaux perro perros mascota mascotas cane cani animali hond honden huisdieren cão cães animais",
  ],
  ["wifi", "wifi wi-fi wlan internet"],
  [
    "access",
    "wheelchair accessible accessibility ramp lift elevator barrierefrei barrierefreiheit rollstuhl stufenlos fahrstuhl aufzug fauteuil accessibilité ascenseur ruedas accesible ascensor rotelle accessibile ascensore rolstoel toegankelijk acessível cadeira elevador",
  ],
  [
    "vegetarian",
    "vegan vegetarian vegane veganes veganer vegetarisch vegetarische végétarien végétarienne végétalien vegetariano vegetariana vegano vegetariani vegetariana veganistisch plantaardig",
  ],
  [
    "allergy",
    "allergy allergies allergens gluten nut lactose allergie allergien allergene glutenfrei laktose allergènes alergia alérgenos allergia allergeni allergenen glutenvrij alergénicos",
  ],
  [
    "pregnancy",
    "pregnant pregnancy prenatal schwanger schwangere schwangerschaft enceinte enceintes grossesse prénatal embarazada embarazadas embarazo prenatales incinta gravidanza zwanger zwangere zwangerschap grávida grávidas gravidez",
  ],
  [
    "food",
    "eat food meal meals lunch dinner restaurant café essen mittagessen abendessen manger repas restauration dîner comer comida cena restaurante mangiare pranzo ristorante eten diner refeição jantar",
  ],
  [
    "damage",
    "damage damaged broken defective faulty kaputt beschädigt beschädigte defekt cassé cassée abîmé défectueux roto rota dañado defectuoso rotto rotta danneggiato difettoso kapot beschadigd partido danificado avariado",
  ],
  [
    "cleaning",
    "clean cleaning wash washing washable dust reinigen reinigung waschen waschbar pflege pflegen nettoyer nettoyage laver entretien limpiar limpieza lavar pulire pulizia lavare schoonmaken wassen wasbaar limpar limpeza",
  ],
  [
    "event",
    "party parties event events celebration celebrations wedding weddings feier feiern hochzeit hochzeiten veranstaltung veranstaltungen fête mariage mariages événement événements fiesta fiestas boda bodas evento eventos festa feste matrimonio matrimoni eventi feest bruiloft evenement casamento casamentos",
  ],
  [
    "photo",
    "photo photos photograph photographs photography picture pictures camera foto fotos fotografieren fotografie photographier photographies fotografiar fotografía fotografare fotografia",
  ],
  [
    "luggage",
    "luggage suitcase suitcases bag bags backpack rucksack gepäck koffer tasche taschen bagage bagages valise valises sac sacs equipaje maleta maletas bagagli bagaglio valigia koffers bagagem mala malas",
  ],
  ["breakfast", "breakfast frühstück déjeuner desayuno colazione ontbijt almoço"],
  [
    "job",
    "job jobs vacancy vacancies career careers hiring stelle stellen stellenangebot karriere jobs bewerben emploi recrutez carrière empleo trabajo lavoro carriere assumete vacature vacatures banen emprego vagas",
  ],
  [
    "people",
    "founder founders owner owners boss staff gründer gründerin inhaber inhaberin chef mitarbeiter fondateur fondatrice équipe fundador fundadora equipo dueño fondatore fondatrice titolare oprichter eigenaar medewerkers equipa equipe dono",
  ],
  [
    "help",
    "support helpdesk assistance kundendienst kundenservice assistenza soporte ayuda ondersteuning klantenservice suporte ajuda",
  ],
  [
    "deposit",
    "deposit upfront anzahlung kaution acompte arrhes anticipo fianza acconto caparra aanbetaling borg sinal caução",
  ],
  [
    "reply",
    "reply replies respond response answer antwort antworten antwortet réponse répondre répondez respuesta responder respondéis risposta rispondere rispondete antwoord antwoorden resposta respondem",
  ],
  [
    "size",
    "size sizes measure dimensions capacity größe größen maße taille tailles talla tallas tamaño taglia taglie dimensioni maat maten afmetingen tamanho tamanhos",
  ],
  ["minimum", "minimum least mindestens mindestbestellwert mindestens minimo mínimo mínima"],
  ["bring", "bring wear mitbringen anziehen apporter traer llevar portare meenemen trazer levar"],
  [
    "start",
    "start starts begin begins beginn beginnt anfang début commence empieza comienza inicio inizio inizia comincia begint começa início",
  ],
  ["gift", "gift voucher vouchers gutschein gutscheine geschenk geschenkgutschein cadeau regalo buono buoni cadeaubon"],
  [
    "member",
    "member membership members mitglied mitgliedschaft mitglieder membre adhésion abonnement socio membresía abono abbonamento lidmaatschap membro assinatura subscription abo abonnements suscripción",
  ],
  ["privacy", "privacy gdpr dsgvo datenschutz confidentialité rgpd privacidad privatezza privacidade lgpd"],
  ["group", "group groups gruppe gruppen groupe groupes grupo grupos gruppo gruppi groep groepen"],
  [
    "beginner",
    "beginner beginners anfänger einsteiger débutant débutants principiante principiantes principianti beginners iniciante iniciantes experience vorkenntnisse erfahrung",
  ],
  [
    "certificate",
    "certificate certified certificates zertifikat zertifikate zertifiziert certificat certifié certificado certificato certificati certificaat certificados",
  ],
  [
    "country",
    "international abroad worldwide countries ausland weltweit länder étranger pays international internacional países extranjero estero paesi buitenland landen exterior",
  ],
];

/** "Tuesday to Sunday" says something about Monday too. */
const weekdays: Topic[] = [
  "monday mondays montag montags lundi lundis lunes lunedì maandag segunda",
  "tuesday tuesdays dienstag dienstags mardi mardis martes martedì dinsdag terça",
  "wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles mercoledì woensdag quarta",
  "thursday thursdays donnerstag donnerstags jeudi jeudis jueves giovedì donderdag quinta",
  "friday fridays freitag freitags vendredi vendredis viernes venerdì vrijdag sexta",
  "saturday saturdays samstag samstags sonnabend samedi samedis sábado sábados sabato zaterdag",
  "sunday sundays sonntag sonntags dimanche dimanches domingo domingos domenica zondag",
].map((words) => ({
  name: words.split(" ")[0]!,
  terms: new Set(terms(words)),
  shape: new RegExp(`\\b(?:${DAYS})\\b`),
  shapeCounts: OTHER_DAY_COUNTS,
}));

const subjects: Topic[] = rows.map(([name, words, asks, shape]) => ({
  name,
  terms: new Set(terms(words)),
  ...(asks ? { asks } : {}),
  ...(shape ? { shape } : {}),
  shapeCounts: SHAPE_COUNTS,
}));

/** Subjects that visitors ask about most, with what a sentence that answers holds. */
export const topics: readonly Topic[] = [...subjects, ...weekdays];

/** Lower case without accents, one space between words: what the patterns here are written for. */
export function folded(text: string): string {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.replaceAll("ß", "ss").replaceAll("’", "'").replace(/\s+/g, " ").trim();
}
